#include "tests/sim/world.hpp"

#include <algorithm>
#include <utility>

namespace outbox::test {

using namespace relay;

SeedChoice& seed_choice() {
  static SeedChoice choice;
  return choice;
}

namespace {

constexpr Millis lease_ttl{1000};
constexpr std::int32_t keys = 6;

Shard shard_of(const std::optional<std::string>& key, std::int64_t salt) {
  const std::size_t hash = key ? std::hash<std::string>{}(*key) : std::hash<std::int64_t>{}(salt);
  return Shard{static_cast<std::int16_t>(hash % shard_count)};
}

}  // namespace

PipelineOptions World::pipeline_options() {
  PipelineOptions out;
  out.name = "sim";
  out.owner = "relay-" + std::to_string(++boots_);
  out.waking = options_.waking;
  out.after_sent = options_.after_sent;
  out.lease_ttl = lease_ttl;
  out.careful_for = Millis{2000};
  out.facts_fresh_for = Millis{3000};
  out.slow_look = Millis{0};  // so that looks go by the floors
  out.topics_max = 2;         // so that topics are forgotten all the time
  out.limits.lanes = options_.lanes == Lanes::four ? 4 : static_cast<std::int16_t>(chance_.between(3, 6));
  out.limits.batch_rows = 40;
  out.limits.flat_rows = 10;
  out.limits.in_flight_rows = 160;
  out.mark_rows_max = 30;
  return out;
}

World::World(WorldOptions options) : options_(options), chance_(options.seed) {
  kafka_.create("plain", 3);
  kafka_.create("single", 1);
  kafka_.create("small", 2).message_bytes_max =
      1300;  // a body over 1,000 bytes does not fit with its envelope
  kafka_.find("small")->message_bytes_real = 1300;
  kafka_.create("surprise", 2).message_bytes_real = 1000;
  if (options_.faults == Faults::on) {
    source_faults_ = {.lost_call_one_in = 60, .lost_reply_one_in = 60, .slow_one_in = 80};
    transactor_faults_ = {.open_fails_one_in = 8,
                          .lost_commit_one_in = 30,
                          .lost_answer_one_in = 30,
                          .late_commit_one_in = 30,
                          .slow_one_in = 60};
    broker_faults_ = {.fatal_one_in = 120, .slow_one_in = 60, .look_up_fails_one_in = 10};
    if (options_.cluster == Cluster::refuses_for_now) broker_faults_.refuses_one_in = 30;
  }
  for (std::int32_t i = 0; i < options_.relays; ++i) processes_.push_back(std::make_unique<Process>());
  database_.checks_generations = options_.mutant != Mutant::ignores_generations;
  database_.checks_epochs = options_.mutant != Mutant::ignores_epochs;
  database_.on_lanes = [this] {
    for (auto& process : processes_)
      if (process->pipeline && !chance_.one_in(4)) process->source->notify_lanes();
  };
  watch_marks();
}

World::~World() {
  for (auto& process : processes_)
    if (process->loop) process->loop->kill();
}

void World::watch_marks() {
  database_.on_marked = [this](const SentRow& sent) {
    KafkaTopic* topic = kafka_.find(database_.row(sent.id).topic);
    const auto* log = topic == nullptr ? nullptr : &topic->logs[sent.partition.value];
    const bool there = log != nullptr && sent.offset.value >= 0 && sent.offset.value < std::ssize(*log) &&
                       (*log)[static_cast<std::size_t>(sent.offset.value)].id == sent.id;
    if (!there) wrong_.push_back("row " + std::to_string(sent.id.value) + " was marked before Kafka had it");
    if (!database_.still_leased(sent.lease))
      wrong_.push_back("row " + std::to_string(sent.id.value) + " was marked under a lease that is lost");
  };
}

bool World::Process::owns(Shard shard) const {
  if (!pipeline || pipeline->phase() == Pipeline::Phase::stopped) return false;
  // It publishes nothing any more and may have given its lanes back; paused now, it does not know yet that
  // they are.
  if (pipeline->phase() == Pipeline::Phase::stopping && pipeline->rows_in_flight() == 0) return false;
  const LaneLeases& leases = pipeline->leases();
  return leases.holds(lane_of(shard, leases.lanes())) && loop->now() < leases.ends_at();
}

// Where the server's clock jumps ahead, leases end early, and two have a lane until one of them learns of it.
void World::published(const Process& by, const Message& message) {
  const std::string row = "row " + std::to_string(message.id.value);
  if (!by.owns(message.shard)) wrong_.push_back(row + " was published without its lane");
  if (options_.server_clock == ServerClock::jumps) return;
  for (const auto& other : processes_)
    if (other.get() != &by && other->owns(message.shard))
      wrong_.push_back(row + " was published while two owned its lane");
}

void World::boot(std::size_t which) {
  Process& p = *processes_[which];
  p.loop = std::make_unique<SimLoop>(clock_);
  p.source = make_source(options_.mutant, clock_, *p.loop, database_, chance_, source_faults_);
  p.broker = make_broker(options_.mutant, clock_, *p.loop, kafka_, chance_, broker_faults_);
  if (options_.mutant == Mutant::never_fences) p.loop->clock_stops_in_freeze();
  p.broker->on_publish = [this, &p](const Message& message) { published(p, message); };
  if (options_.promise == Promise::exactly_once) {
    p.transactor =
        make_transactor(options_.mutant, clock_, *p.loop, kafka_, coordinator_, chance_, transactor_faults_);
    p.transactor->on_publish = [this, &p](const Message& message) { published(p, message); };
  }
  p.pipeline = std::make_unique<Pipeline>(pipeline_options(), *p.loop, *p.source, *p.broker, log::Logger{},
                                          p.transactor.get());
  p.pipeline->start();
}

void World::kill(std::size_t which) {
  Process& p = *processes_[which];
  p.loop->kill();
  p.source->kill();
  p.broker->kill();
  if (p.transactor) p.transactor->kill();
  p.pipeline.reset();
  to_bury_.push_back(std::move(p));
}

void World::insert_row() {
  StoredRow row;
  const std::int64_t kind = chance_.between(1, 100);
  row.topic = kind <= 55   ? "plain"
              : kind <= 75 ? "single"
              : kind <= 88 ? "small"
              : kind <= 94 ? "surprise"
                           : "late";
  if (!chance_.one_in(5)) row.key = "k" + std::to_string(chance_.between(1, keys));
  const std::string lock = row.topic + "/" + row.key.value_or("");
  if (row.key && locked_keys_.contains(lock)) return;  // another transaction has this key's balance locked
  const bool large = (row.topic == "small" || row.topic == "surprise") && chance_.one_in(12);
  row.body = std::string(static_cast<std::size_t>(large ? 1500 : chance_.between(0, 300)), 'x');
  row.created_at = clock_.wall();
  row.shard = shard_of(row.key, written_);
  row.msg_id.bytes[0] = static_cast<std::uint8_t>(written_);
  row.msg_id.bytes[1] = static_cast<std::uint8_t>(written_ >> 8);
  if (chance_.one_in(20)) row.available_at = clock_.wall() + chance_.micros(0, 3'000'000);
  const RowId id = database_.insert(row);
  if (row.available_at) history_.scheduled.insert(id.value);
  history_.times[id.value] = {row.created_at, row.available_at};
  written_ += 1;
  open_transactions_ += 1;
  if (row.key) locked_keys_.insert(lock);
  const bool aborts = chance_.one_in(15);
  const Micros open = chance_.one_in(25) ? chance_.micros(100'000, 2'500'000) : chance_.micros(0, 8000);
  clock_.after(open, [this, id, aborts, lock] {
    open_transactions_ -= 1;
    locked_keys_.erase(lock);
    if (aborts) return database_.erase(id);
    database_.commit(id);
    history_.committed.insert(id.value);
    if (history_.scheduled.contains(id.value) && chance_.one_in(4)) try_to_cancel(id);
    if (database_.asleep_until > clock_.now())
      for (auto& process : processes_)
        if (process->pipeline) process->source->notify();
  });
}

// The application cancels it and rolls back: until then the row is locked.
void World::try_to_cancel(RowId id) {
  clock_.after(chance_.micros(0, 1'500'000), [this, id] {
    if (!database_.rows().contains(id.value)) return;
    database_.row(id).locked = true;
    clock_.after(chance_.micros(0, 2'000'000), [this, id] {
      if (database_.rows().contains(id.value)) database_.row(id).locked = false;
    });
  });
}

void World::write() {
  if (written_ >= options_.rows) return;
  const std::int64_t burst = chance_.one_in(30) ? 40 : 1;
  for (std::int64_t i = 0; i < burst; ++i) insert_row();
  const Micros pause = chance_.one_in(40) ? chance_.micros(100'000, 1'000'000) : chance_.micros(100, 40'000);
  clock_.after(pause, [this] { write(); });
}

void World::stop_and_boot(std::size_t which, Micros pause) {
  Process& p = *processes_[which];
  if (!p.pipeline || p.pipeline->phase() == Pipeline::Phase::stopping || p.loop->frozen()) return;
  p.pipeline->stop([this, which, pause] {
    clock_.after(Millis{50}, [this, which, pause] {
      const Process& stopped = *processes_[which];
      if (!stopped.pipeline || stopped.pipeline->phase() != Pipeline::Phase::stopped) return;
      kill(which);
      clock_.after(pause, [this, which] { boot(which); });
    });
  });
}

// An operator has a row sent again; the copy is wanted.
void World::replay_row() {
  if (!striking_) return;
  std::vector<std::int64_t> sent;
  for (const auto& [id, row] : database_.rows())
    if (row.status == RowStatus::sent && row.key && !history_.scheduled.contains(id)) sent.push_back(id);
  if (!sent.empty()) {
    // The newest ones are those that a ledger may still name.
    const auto from = std::max<std::int64_t>(0, std::ssize(sent) - 12);
    StoredRow& row =
        database_.row(RowId{sent[static_cast<std::size_t>(chance_.between(from, std::ssize(sent) - 1))]});
    row.status = RowStatus::pending;
    row.generation += 1;
    row.partition.reset();
    row.offset.reset();
    history_.replays[row.id.value] += 1;
  }
  clock_.after(chance_.micros(20'000, 400'000), [this] { replay_row(); });
}

void World::count_copies() {
  std::map<std::int64_t, std::int64_t> copies;
  for (const auto& [name, topic] : kafka_.topics())
    for (const auto& [partition, log] : topic.logs)
      for (const KafkaRecord& r : log) copies[r.id.value] += 1;
  for (const auto& [id, count] : copies) {
    const auto replays = history_.replays.find(id);
    const auto row = database_.rows().find(id);
    const bool waits =
        row != database_.rows().end() && row->second.status != RowStatus::sent;  // behind a dead one
    const std::int64_t wanted = (waits ? 0 : 1) + (replays == history_.replays.end() ? 0 : replays->second);
    if (count != wanted)
      wrong_.push_back("row " + std::to_string(id) + " is " + std::to_string(count) +
                       " times in Kafka, and not " + std::to_string(wanted));
  }
}

void World::come_and_go() {
  if (!striking_) return;
  stop_and_boot(static_cast<std::size_t>(chance_.between(0, options_.relays - 1)),
                chance_.micros(0, 800'000));
  clock_.after(chance_.micros(50'000, 1'500'000), [this] { come_and_go(); });
}

// An operator mends a dead message and sends it again, before the later ones of its key.
void World::mend() {
  for (const auto& [id, row] : database_.rows()) {
    if (row.status != RowStatus::dead) continue;
    database_.row(row.id).body = "mended";
    database_.retry(row.id);
    return;
  }
}

void World::strike() {
  if (!striking_) return;
  const auto which = static_cast<std::size_t>(chance_.between(0, options_.relays - 1));
  Process& p = *processes_[which];
  switch (chance_.between(1, 9)) {
    case 7:
      mend();
      break;
    case 1:
    case 2:
      if (!p.pipeline) break;
      kill(which);
      clock_.after(chance_.micros(1000, 3'000'000), [this, which] { boot(which); });
      break;
    case 3:
      if (p.pipeline) p.loop->freeze(chance_.micros(10'000, 4'000'000));
      break;
    case 4:
      kafka_.away_until = std::max(kafka_.away_until, clock_.now() + chance_.micros(50'000, 3'000'000));
      break;
    case 5:
      stop_and_boot(which, Micros{0});
      break;
    case 6:
      if (options_.server_clock == ServerClock::jumps)
        database_.clock_step += std::chrono::hours{chance_.one_in(2) ? 24 : -24};
      if (p.pipeline) p.loop->step_wall(std::chrono::hours{chance_.one_in(2) ? 24 : -24});
      break;
    case 8:
      kafka_.partition_away_until[{"plain", static_cast<std::int32_t>(chance_.between(0, 2))}] =
          clock_.now() + chance_.micros(500'000, 6'000'000);
      break;
    default:
      kafka_.create("plain", kafka_.find("plain")->partitions + 1);
      break;
  }
  clock_.after(chance_.micros(50'000, 1'500'000), [this] { strike(); });
}

bool World::at_rest() const {
  if (written_ < options_.rows || open_transactions_ > 0) return false;
  return std::none_of(database_.rows().begin(), database_.rows().end(), [this](const auto& entry) {
    const StoredRow& row = entry.second;
    const bool topic_held =
        row.status == RowStatus::held && database_.holds().contains({HoldScope::topic, row.topic, {}});
    return row.status == RowStatus::pending || topic_held;
  });
}

std::vector<std::string> World::run() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const bool later = i > 0 && options_.members == Members::come_and_go;
    if (!later) boot(i);
    if (later) clock_.after(chance_.micros(0, 2'000'000), [this, i] { boot(i); });
  }
  write();
  if (options_.members == Members::come_and_go) clock_.after(Millis{500}, [this] { come_and_go(); });
  if (options_.promise == Promise::exactly_once && options_.after_sent == AfterSent::mark)
    clock_.after(Millis{500}, [this] { replay_row(); });
  if (options_.faults == Faults::on) clock_.after(Millis{300}, [this] { strike(); });
  clock_.after(Millis{2500}, [this] { kafka_.create("late", 1); });
  while (written_ < options_.rows) clock_.run(clock_.now() + Millis{100});
  striking_ = false;
  source_faults_ = {};
  broker_faults_ = {};
  transactor_faults_ = {};
  clock_.run(clock_.now() + Millis{8000});  // whatever was struck is back by now
  const MonoTime deadline = clock_.now() + std::chrono::minutes{3};
  while (!at_rest() && clock_.now() < deadline && wrong_.empty()) clock_.run(clock_.now() + Millis{100});
  judge_the_judgement();
  if (options_.promise == Promise::exactly_once) count_copies();
  auto findings = judge(database_, kafka_, options_.after_sent, history_);
  findings.insert(findings.begin(), wrong_.begin(), wrong_.end());
  return findings;
}

// Everything is settled and nothing is struck any more: a relay that calls itself stuck now would be
// restarted for nothing, again and again.
void World::judge_the_judgement() {
  if (!at_rest()) return;
  clock_.run(clock_.now() + Millis{15'000});
  for (const auto& process : processes_) {
    if (!process->pipeline || process->pipeline->phase() == Pipeline::Phase::stopped) continue;
    const Judgement judgement = process->pipeline->judgement();
    if (judgement.verdict != Verdict::ready)
      wrong_.push_back("an idle relay calls itself " + std::string{to_string(judgement.verdict)} + ": " +
                       judgement.reason);
  }
}

std::int64_t World::duplicates() const {
  std::int64_t records = 0;
  std::set<std::int64_t> distinct;
  for (const auto& [name, topic] : kafka_.topics())
    for (const auto& [partition, log] : topic.logs)
      for (const KafkaRecord& r : log) {
        records += 1;
        distinct.insert(r.id.value);
      }
  return records - std::ssize(distinct);
}

}  // namespace outbox::test
