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
  judge.nothing_passes_a_dead_one();
  return std::move(judge.findings);
}

}  // namespace outbox::test
