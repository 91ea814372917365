#include "tests/support/fakes/fake_source.hpp"

#include <type_traits>
#include <utility>

namespace outbox::test {

using namespace relay;

template <class T, class Call>
void FakeSource::travel(Call call, Done<T> done) {
  const Micros out =
      chance_.one_in(faults_.slow_one_in) ? chance_.micros(100'000, 1'500'000) : chance_.micros(50, 1500);
  const bool lost_call = chance_.one_in(faults_.lost_call_one_in);
  const bool lost_reply = chance_.one_in(faults_.lost_reply_one_in);
  clock_.after(out, [this, lost_call, lost_reply, call = std::move(call), done = std::move(done),
                     alive = alive_]() mutable {
    auto answer = [&]() -> Result<T> {
      if (lost_call) return failure(Disposition::reconnect, "the connection broke before the call");
      if constexpr (std::is_void_v<T>)
        call();
      else if (!lost_reply)
        return call();
      else
        static_cast<void>(call());
      if (lost_reply) return failure(Disposition::in_doubt, "the connection broke before the answer");
      if constexpr (std::is_void_v<T>)
        return {};
      else
        return failure(Disposition::fatal, "unreachable");
    }();
    if (!*alive) return;
    clock_.after(chance_.micros(20, 500),
                 [this, done = std::move(done), answer = std::move(answer), alive]() mutable {
                   if (!*alive) return;
                   loop_.post([done = std::move(done), answer = std::move(answer), alive]() mutable {
                     if (*alive) done(std::move(answer));
                   });
                 });
  });
}

void FakeSource::claim(ClaimRequest request, Done<Batch> done) {
  travel<Batch>([&db = database_, &clock = clock_,
                 request = std::move(request)] { return db.claim(request, clock.wall()); },
                std::move(done));
}
void FakeSource::mark(std::vector<SentRow> rows, AfterSent after, Done<MarkReply> done) {
  travel<MarkReply>([&db = database_, rows = std::move(rows), after] { return db.mark(rows, after); },
                    std::move(done));
}
void FakeSource::bury(DeadRow row, DoneStatus done) {
  travel<void>([&db = database_, row = std::move(row)] { db.bury(row); }, std::move(done));
}
void FakeSource::hold(HoldTarget target, std::string reason, DoneStatus done) {
  travel<void>(
      [&db = database_, target = std::move(target), reason = std::move(reason)] { db.hold(target, reason); },
      std::move(done));
}
void FakeSource::set_held(std::vector<RowName> rows, DoneStatus done) {
  travel<void>([&db = database_, rows = std::move(rows)] { db.set_held(rows); }, std::move(done));
}
void FakeSource::release(HoldTarget target, Done<Release> done) {
  travel<Release>([&db = database_, target = std::move(target)] { return db.release(target); },
                  std::move(done));
}
void FakeSource::held_topics(Done<std::vector<std::string>> done) {
  travel<std::vector<std::string>>([&db = database_] { return db.held_topics(); }, std::move(done));
}
void FakeSource::lease(LeaseRequest request, Done<LeaseReply> done) {
  travel<LeaseReply>([&db = database_, &clock = clock_,
                      request = std::move(request)] { return db.lease(request, db.clock(clock.now())); },
                     std::move(done));
}
void FakeSource::give_back(std::string owner, std::vector<Lease> lanes, Leaving leaving, DoneStatus done) {
  travel<void>([&db = database_, owner = std::move(owner), lanes = std::move(lanes),
                leaving] { db.give_back(owner, lanes, leaving); },
               std::move(done));
}
void FakeSource::pin(std::string topic, std::int32_t current, Done<std::int32_t> done) {
  travel<std::int32_t>(
      [&db = database_, topic = std::move(topic), current] { return db.pin(topic, current); },
      std::move(done));
}
void FakeSource::repin(std::string topic, std::int32_t partitions, DoneStatus done) {
  travel<void>([&db = database_, topic = std::move(topic), partitions] { db.repin(topic, partitions); },
               std::move(done));
}
void FakeSource::join_ledger(Done<LedgerStanding> done) {
  travel<LedgerStanding>([&db = database_] { return db.join_ledger(); }, std::move(done));
}
void FakeSource::settle_ledger(std::vector<LaneGeneration> settled, Lease lease, DoneStatus done) {
  travel<void>([&db = database_, settled = std::move(settled), lease] { db.settle_ledger(settled, lease); },
               std::move(done));
}
void FakeSource::declare_asleep(Millis time, DoneStatus done) {
  travel<void>([&db = database_, &clock = clock_,
                time] { db.asleep_until = time.count() > 0 ? clock.now() + time : MonoTime{}; },
               std::move(done));
}

void FakeSource::notify() {
  hint(&Events::on_hint);
}
void FakeSource::notify_lanes() {
  hint(&Events::on_lanes);
}

void FakeSource::hint(std::function<void()> Events::*which) {
  clock_.after(chance_.micros(20, 500), [this, which, alive = alive_] {
    if (!*alive) return;
    loop_.post([this, which, alive] {
      if (*alive && events_.*which) (events_.*which)();
    });
  });
}

}  // namespace outbox::test
