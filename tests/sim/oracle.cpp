#include <algorithm>
#include <map>
#include <set>

#include "tests/sim/world.hpp"

namespace outbox::test {
namespace {

using namespace relay;

struct FirstSeen {
  std::uint64_t appended;
  std::string topic;
  std::optional<std::string> key;
};

// Every row id that is in Kafka, with its first occurrence in the whole cluster.
std::map<std::int64_t, FirstSeen> first_occurrences(const FakeKafka& kafka) {
  std::map<std::int64_t, FirstSeen> first;
  for (const auto& [name, topic] : kafka.topics())
    for (const auto& [partition, log] : topic.logs)
      for (const KafkaRecord& r : log) {
        const auto [at, added] = first.try_emplace(r.id.value, FirstSeen{r.appended, name, r.key});
        if (!added) at->second.appended = std::min(at->second.appended, r.appended);
      }
  return first;
}

std::string describe(const StoredRow& row) {
  return "row " + std::to_string(row.id.value) + " of " + row.topic + "/" + row.key.value_or("(null)");
}

class Judge {
 public:
  Judge(const FakeDatabase& database, const FakeKafka& kafka, const History& history)
      : database_(database), history_(history), first_(first_occurrences(kafka)) {}

  void nothing_lost(AfterSent after_sent) {
    for (const std::int64_t id : history_.committed) {
      const auto at = database_.rows().find(id);
      if (at == database_.rows().end()) {
        if (after_sent == AfterSent::mark || !first_.contains(id))
          say("row " + std::to_string(id) + " is gone and not in Kafka");
        continue;
      }
      const StoredRow& row = at->second;
      if (row.status == RowStatus::sent && !first_.contains(id))
        say(describe(row) + " is SENT and not in Kafka");
      if (row.status == RowStatus::pending) say(describe(row) + " is still PENDING at rest");
      if (row.status == RowStatus::dead && row.body.value_or("").size() <= 1000)
        say(describe(row) + " died of nothing: " + row.last_error);
      if (row.status == RowStatus::held && !behind_a_dead_one(row))
        say(describe(row) + " is HELD behind nothing");
    }
  }

  void no_phantoms() {
    for (const auto& [id, seen] : first_)
      if (!history_.committed.contains(id))
        say("row " + std::to_string(id) + " is in Kafka and was never committed");
  }

  void order_of_first_occurrences() {
    std::map<std::pair<std::string, std::string>, std::vector<std::pair<std::uint64_t, std::int64_t>>> by_key;
    for (const auto& [id, seen] : first_)
      if (seen.key && seen.topic != "surprise" && !scheduled(id))
        by_key[{seen.topic, *seen.key}].emplace_back(seen.appended, id);
    for (auto& [key, occurrences] : by_key) {
      std::sort(occurrences.begin(), occurrences.end());
      for (std::size_t i = 1; i < occurrences.size(); ++i)
        if (occurrences[i].second < occurrences[i - 1].second)
          say("row " + std::to_string(occurrences[i].second) + " of " + key.first + "/" + key.second +
              " came after row " + std::to_string(occurrences[i - 1].second));
    }
  }

  // A scheduled row comes before what was begun after it came due, and behind what its writer saw committed.
  void place_of_scheduled_ones() {
    std::map<std::pair<std::string, std::string>, std::vector<std::pair<std::int64_t, std::uint64_t>>> by_key;
    for (const auto& [id, seen] : first_)
      if (seen.key && seen.topic != "surprise")
        by_key[{seen.topic, *seen.key}].emplace_back(id, seen.appended);
    for (const auto& [key, rows] :
         by_key)  // by id: whoever wrote a row had its key's lock, and saw the earlier ones
      for (std::size_t later = 1; later < rows.size(); ++later)
        for (std::size_t earlier = 0; earlier < later; ++earlier) place_of(rows[earlier], rows[later], key);
  }

  void nothing_passes_a_dead_one() {
    for (const auto& [dead_id, dead] : database_.rows()) {
      if (dead.status != RowStatus::dead || !dead.key || dead.topic == "surprise" || scheduled(dead_id))
        continue;
      for (const auto& [id, seen] : first_)
        if (id > dead_id && seen.topic == dead.topic && seen.key == dead.key && !scheduled(id))
          say("row " + std::to_string(id) + " passed the dead " + describe(dead));
    }
  }

  std::vector<std::string> findings;

 private:
  void say(std::string finding) { findings.push_back(std::move(finding)); }
  void place_of(const std::pair<std::int64_t, std::uint64_t>& earlier,
                const std::pair<std::int64_t, std::uint64_t>& later,
                const std::pair<std::string, std::string>& key) {
    const History::Times& one = history_.times.at(earlier.first);
    const History::Times& other = history_.times.at(later.first);
    if (!one.available_at && !other.available_at) return;
    const WallTime due = one.available_at.value_or(one.created_at);
    const bool in_order = !one.available_at || due <= other.available_at.value_or(other.created_at);
    if (in_order && later.second < earlier.second)
      say("row " + std::to_string(later.first) + " of " + key.first + "/" + key.second + " passed row " +
          std::to_string(earlier.first) + ", one of them scheduled");
  }
  [[nodiscard]] bool scheduled(std::int64_t id) const { return history_.scheduled.contains(id); }
  [[nodiscard]] bool behind_a_dead_one(const StoredRow& row) const {
    return std::any_of(database_.rows().begin(), database_.rows().end(), [&](const auto& entry) {
      return entry.second.status == RowStatus::dead && entry.second.topic == row.topic &&
             entry.second.key == row.key;
    });
  }

  const FakeDatabase& database_;
  const History& history_;
  std::map<std::int64_t, FirstSeen> first_;
};

}  // namespace

std::vector<std::string> judge(const FakeDatabase& database, const FakeKafka& kafka, AfterSent after_sent,
                               const History& history) {
  Judge judge{database, kafka, history};
  judge.nothing_lost(after_sent);
  judge.no_phantoms();
  judge.order_of_first_occurrences();
  judge.place_of_scheduled_ones();
  judge.nothing_passes_a_dead_one();
  return std::move(judge.findings);
}

}  // namespace outbox::test
