#include <algorithm>
#include <map>

#include "tests/sim/world.hpp"

namespace outbox::test {
namespace {

using namespace relay;

// `id > last`: rows that commit after a larger id was seen are never found.
class CursorSource final : public FakeSource {
 public:
  using FakeSource::FakeSource;
  void claim(ClaimRequest request, Done<Batch> done) override {
    FakeSource::claim(std::move(request), [this, done = std::move(done)](Result<Batch> batch) {
      if (batch) {
        std::erase_if(batch->rows, [this](const Message& m) { return m.id.value <= last_[m.shard.value]; });
        for (const Message& m : batch->rows)
          last_[m.shard.value] = std::max(last_[m.shard.value], m.id.value);
      }
      done(std::move(batch));
    });
  }

 private:
  std::map<std::int16_t, std::int64_t> last_;
};

// Leaves scheduled rows out, and says nothing of it: what is locked, and all but the first.
class HushedSource final : public FakeSource {
 public:
  using FakeSource::FakeSource;
  void claim(ClaimRequest request, Done<Batch> done) override {
    FakeSource::claim(std::move(request), [done = std::move(done)](Result<Batch> batch) {
      if (batch) {
        std::erase_if(batch->due, [](const Message& m) { return m.locked == Locked::yes; });
        if (batch->due.size() > 1) {
          batch->due.resize(1);
          batch->more = true;
          if (batch->cut.empty()) batch->cut = {no_shard};
        }
        batch->due_cut.reset();
      }
      done(std::move(batch));
    });
  }
};

class ForgetfulSource final : public FakeSource {
 public:
  using FakeSource::FakeSource;
  void claim(ClaimRequest request, Done<Batch> done) override {
    request.except.clear();
    FakeSource::claim(std::move(request), std::move(done));
  }
};

// Writes no hold with a dead message, and sees none.
class OpenGateSource final : public FakeSource {
 public:
  using FakeSource::FakeSource;
  void bury(DeadRow row, DoneStatus done) override {
    row.hold.reset();
    FakeSource::bury(std::move(row), std::move(done));
  }
};

// Gives a surplus back as soon as it hears of it, whatever is in flight.
class HastySource final : public FakeSource {
 public:
  using FakeSource::FakeSource;
  void lease(LeaseRequest request, Done<LeaseReply> done) override {
    const std::string owner = request.owner;
    FakeSource::lease(std::move(request), [this, owner, done = std::move(done)](Result<LeaseReply> reply) {
      if (reply && std::ssize(reply->held) > reply->share)
        give_back(owner, {reply->held.begin() + reply->share, reply->held.end()}, Leaving::no,
                  [](const Status&) {});
      done(std::move(reply));
    });
  }
};

// Says "delivered" as soon as it has the message.
class EagerBroker final : public FakeBroker {
 public:
  using FakeBroker::FakeBroker;
  Result<Accepted> publish(const Outgoing& out) override {
    auto accepted = FakeBroker::publish(Outgoing{out.message, out.partition, 0});
    if (accepted) report({Delivery{out.token, out.partition, Offset{next_++}, std::nullopt, ""}});
    return accepted;
  }
  void start(Events events) override {
    auto real = std::move(events.on_delivered);
    events.on_delivered = [real](std::span<const Delivery> reports) {
      std::vector<Delivery> early;
      std::copy_if(reports.begin(), reports.end(), std::back_inserter(early),
                   [](const Delivery& d) { return d.token != 0; });
      real(early);
    };
    FakeBroker::start(std::move(events));
  }

 private:
  std::int64_t next_ = 0;
};

class AmnesiacTransactor final : public FakeTransactor {
 public:
  using FakeTransactor::FakeTransactor;

 private:
  [[nodiscard]] std::vector<LedgerRow> last_of(const FakeCoordinator::Id&) const override { return {}; }
};

class ShortSightedTransactor final : public FakeTransactor {
 public:
  using FakeTransactor::FakeTransactor;

 private:
  [[nodiscard]] std::vector<LedgerRow> last_of(const FakeCoordinator::Id& id) const override {
    return id.before;
  }
};

class OpenHouseTransactor final : public FakeTransactor {
 public:
  using FakeTransactor::FakeTransactor;

 private:
  [[nodiscard]] bool fences() const override { return false; }
};

// Says "marked" when it has the mark, which takes effect later, or is lost with the process.
class LazyMarkSource final : public FakeSource {
 public:
  LazyMarkSource(SimClock& clock, Loop& loop, FakeDatabase& database, Chance& chance,
                 const SourceFaults& faults)
      : FakeSource(clock, loop, database, chance, faults), loop_(loop) {}
  void mark(std::vector<SentRow> rows, AfterSent after, Done<MarkReply> done) override {
    loop_.post([done = std::move(done)] { done(MarkReply{}); });
    loop_.at(loop_.now() + Millis{30}, [this, rows = std::move(rows), after]() mutable {
      FakeSource::mark(std::move(rows), after, [](const Result<MarkReply>&) {});
    });
  }

 private:
  Loop& loop_;
};

class CarelessSource final : public FakeSource {
 public:
  using FakeSource::FakeSource;
  void join_ledger(Done<LedgerStanding> done) override {
    FakeSource::join_ledger([done = std::move(done)](Result<LedgerStanding> standing) {
      if (standing) standing->older.clear();
      done(std::move(standing));
    });
  }
};

}  // namespace

std::unique_ptr<FakeTransactor> make_transactor(Mutant mutant, SimClock& clock, SimLoop& loop,
                                                FakeKafka& kafka, FakeCoordinator& coordinator,
                                                Chance& chance, const TransactorFaults& faults) {
  switch (mutant) {
    case Mutant::forgets_ledger:
      return std::make_unique<AmnesiacTransactor>(clock, loop, kafka, coordinator, chance, faults);
    case Mutant::reads_ledger_short:
      return std::make_unique<ShortSightedTransactor>(clock, loop, kafka, coordinator, chance, faults);
    case Mutant::fences_nobody:
      return std::make_unique<OpenHouseTransactor>(clock, loop, kafka, coordinator, chance, faults);
    default:
      return std::make_unique<FakeTransactor>(clock, loop, kafka, coordinator, chance, faults);
  }
}

std::unique_ptr<FakeSource> make_source(Mutant mutant, SimClock& clock, Loop& loop, FakeDatabase& database,
                                        Chance& chance, const SourceFaults& faults) {
  switch (mutant) {
    case Mutant::claims_by_cursor:
      return std::make_unique<CursorSource>(clock, loop, database, chance, faults);
    case Mutant::hides_due_rows:
      return std::make_unique<HushedSource>(clock, loop, database, chance, faults);
    case Mutant::forgets_in_flight:
      return std::make_unique<ForgetfulSource>(clock, loop, database, chance, faults);
    case Mutant::opens_the_gate:
      return std::make_unique<OpenGateSource>(clock, loop, database, chance, faults);
    case Mutant::gives_back_in_flight:
      return std::make_unique<HastySource>(clock, loop, database, chance, faults);
    case Mutant::marks_late:
      return std::make_unique<LazyMarkSource>(clock, loop, database, chance, faults);
    case Mutant::leaves_old_ledgers:
      return std::make_unique<CarelessSource>(clock, loop, database, chance, faults);
    default:
      return std::make_unique<FakeSource>(clock, loop, database, chance, faults);
  }
}

std::unique_ptr<FakeBroker> make_broker(Mutant mutant, SimClock& clock, Loop& loop, FakeKafka& kafka,
                                        Chance& chance, const BrokerFaults& faults) {
  if (mutant == Mutant::marks_before_ack)
    return std::make_unique<EagerBroker>(clock, loop, kafka, chance, faults);
  return std::make_unique<FakeBroker>(clock, loop, kafka, chance, faults);
}

}  // namespace outbox::test
