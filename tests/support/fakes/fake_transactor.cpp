#include "tests/support/fakes/fake_transactor.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.hpp"

namespace outbox::test {

using namespace relay;

Micros FakeTransactor::travel() {
  return chance_.one_in(faults_.slow_one_in) ? chance_.micros(100'000, 4'000'000) : chance_.micros(200, 4000);
}

// The threads of a stopped process stand still, and go on where they were.
void FakeTransactor::when_awake(std::function<void()> step) {
  clock_.at(std::max(clock_.now() + travel(), kafka_.away_until),
            [this, step = std::move(step), alive = alive_] {
              if (!*alive || !loop_.frozen()) return step();
              clock_.at(loop_.frozen_until() + Micros{1}, step);
            });
}

// One that was closed meanwhile still fences, as a request does that is on its way.
void FakeTransactor::open(OpenRequest request, Done<std::vector<LedgerRow>> done) {
  close(request.ledger_lane);
  const std::int64_t opening = ++openings_[request.ledger_lane];
  const bool fails = chance_.one_in(faults_.open_fails_one_in);
  const bool in_vain = fails && chance_.one_in(2);
  when_awake([this, ledger_lane = request.ledger_lane, done = std::move(done), opening, fails, in_vain,
              alive = alive_] {
    if (!*alive) return;
    auto& id = coordinator_.ids[ledger_lane];
    const std::int64_t epoch = in_vain || !fences() ? id.epoch : ++id.epoch;
    take_lane(ledger_lane, done, fails ? std::nullopt : std::optional{epoch}, opening);
  });
}

void FakeTransactor::take_lane(LedgerLane ledger_lane, Done<std::vector<LedgerRow>> done,
                               std::optional<std::int64_t> epoch, std::int64_t opening) {
  when_awake([this, ledger_lane, done = std::move(done), epoch, opening, alive = alive_] {
    if (!*alive) return;
    Result<std::vector<LedgerRow>> rows = last_of(coordinator_.ids[ledger_lane]);
    if (!epoch)
      rows = failure(Disposition::retry, "no broker answers");
    else if (opening == openings_[ledger_lane])
      epochs_[ledger_lane] = *epoch;
    loop_.post([alive, done, rows = std::move(rows)] {
      if (*alive) done(rows);
    });
  });
}

void FakeTransactor::send(LedgerLane ledger_lane, std::vector<Outgoing> messages, Ended ended) {
  OUTBOX_CHECK(epochs_.contains(ledger_lane) && !under_way_.contains(ledger_lane),
               "a transaction is sent by an open, idle lane");
  const auto transaction = std::make_shared<Transaction>();
  transaction->ledger_lane = ledger_lane;
  transaction->epoch = epochs_[ledger_lane];
  for (const Outgoing& out : messages) {
    const Message& m = *out.message;
    on_publish(m);
    transaction->carried.push_back({std::string{m.topic},
                                    out.partition,
                                    record_of(m),
                                    static_cast<std::int64_t>(m.body ? m.body->size() : 0),
                                    {m.id, m.msg_id, m.generation, out.partition, Offset{-1}}});
  }
  under_way_[ledger_lane] = transaction;
  when_awake([this, transaction, ended = std::move(ended)] { arrive(transaction, ended); });
}

std::vector<RefusedMessage> FakeTransactor::refusals(const Transaction& transaction) {
  std::set<std::pair<std::string, std::int32_t>> too_large;
  std::vector<RefusedMessage> out;
  for (const Carried& c : transaction.carried) {
    const KafkaTopic* topic = kafka_.find(c.topic);
    if (topic != nullptr && c.bytes > topic->message_bytes_real)
      too_large.emplace(c.topic, c.partition.value);
  }
  // One of them is traced each time.
  const auto closed = std::ranges::find_if(transaction.carried, [&](const Carried& c) {
    const KafkaTopic* topic = kafka_.find(c.topic);
    return topic != nullptr && topic->refuses_transactions;
  });
  for (std::size_t i = 0; i < transaction.carried.size(); ++i) {
    const Carried& c = transaction.carried[i];
    const KafkaTopic* topic = kafka_.find(c.topic);
    if (closed != transaction.carried.end()) {
      if (c.topic == closed->topic) out.push_back({i, Refusal::topic, "refused"});
    } else if (topic == nullptr || c.partition.value >= topic->partitions)
      out.push_back({i, Refusal::topic, "refused"});
    else if (too_large.contains({c.topic, c.partition.value}))
      out.push_back({i, Refusal::message, "refused"});
  }
  return out;
}

// The messages are there; the commit goes out. The process may be gone by then.
void FakeTransactor::arrive(const Shared& transaction, const Ended& ended) {
  TransactionEnd unclear;
  unclear.error = Error{Disposition::in_doubt, "", "the commit was not answered with success", ""};
  if (!*alive_) {
    if (chance_.one_in(2)) static_cast<void>(commit(*transaction));
    return;
  }
  unclear.refused = refusals(*transaction);
  const bool abandoned = transaction->abandoned && chance_.one_in(2);
  if (abandoned || !unclear.refused.empty() || chance_.one_in(faults_.lost_commit_one_in))
    return answer(transaction, ended, std::move(unclear));
  if (chance_.one_in(faults_.late_commit_one_in)) {
    clock_.after(chance_.micros(10, 300'000),
                 [this, transaction] { static_cast<void>(commit(*transaction)); });
    return answer(transaction, ended, std::move(unclear));
  }
  TransactionEnd end = commit(*transaction);
  if (!end.committed || chance_.one_in(faults_.lost_answer_one_in)) end = std::move(unclear);
  answer(transaction, ended, std::move(end));
}

TransactionEnd FakeTransactor::commit(const Transaction& transaction) {
  TransactionEnd end;
  auto& id = coordinator_.ids[transaction.ledger_lane];
  if (fences() && id.epoch != transaction.epoch) return end;
  id.before = std::exchange(id.last, {});
  coordinator_.commits += 1;
  for (const Carried& c : transaction.carried) {
    const Offset offset = kafka_.append(*kafka_.find(c.topic), c.partition, c.record);
    end.offsets.push_back(offset);
    id.last.push_back({c.row.id, c.row.msg_id, c.row.generation, c.partition, offset});
  }
  end.committed = true;
  return end;
}

void FakeTransactor::answer(const Shared& transaction, const Ended& ended, TransactionEnd end) {
  if (!end.committed) epochs_.erase(transaction->ledger_lane);
  clock_.after(chance_.micros(20, 1000), [this, transaction, ended, end = std::move(end), alive = alive_] {
    if (!*alive) return;
    loop_.post([this, transaction, ended, end, alive] {
      if (!*alive) return;
      if (const auto at = under_way_.find(transaction->ledger_lane);
          at != under_way_.end() && at->second == transaction)
        under_way_.erase(at);
      ended(end);
    });
  });
}

void FakeTransactor::abandon(LedgerLane ledger_lane) {
  if (const auto at = under_way_.find(ledger_lane); at != under_way_.end()) at->second->abandoned = true;
}

void FakeTransactor::close(LedgerLane ledger_lane) {
  ++openings_[ledger_lane];
  epochs_.erase(ledger_lane);
}

}  // namespace outbox::test
