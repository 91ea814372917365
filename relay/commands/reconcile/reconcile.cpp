#include "relay/commands/reconcile/reconcile.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "relay/commands/reconcile/own_record.hpp"

namespace outbox::commands {
namespace {

using relay::PartitionEnds;
using relay::ReadRecord;

constexpr std::size_t batch_max = 500;
constexpr Millis ends_for{100};         // what is known of a partition's ends is asked again after this
constexpr std::chrono::hours early{1};  // a relay's clock may lag behind the database's by this
constexpr auto no_offset = std::numeric_limits<std::int64_t>::max();

// A record that no row of the view points at; its row is looked up.
struct Stray {
  OwnRecord own{};
  std::string topic{};
  std::int32_t partition = -1;
  std::int64_t offset = -1;
  WallTime at{};
};

struct Place {
  std::string topic{};
  std::int32_t partition = -1;
  PartitionEnds ends{};
  std::chrono::steady_clock::time_point asked{};
};

class Walk {
 public:
  Walk(OutboxSide& outbox, std::vector<ConsumerSide>& consumers, relay::KafkaReader& kafka,
       const ReconcileOptions& options, const std::function<void(const Finding&)>& found)
      : outbox_(outbox), consumers_(consumers), kafka_(kafka), options_(options), found_(found) {}

  Result<Account> run() {
    account_.rows_are_deleted = options_.rows_are_deleted;
    for (const ConsumerSide& c : consumers_) account_.consumers.push_back({.name = c.name()});
    auto rows = outbox_.counts();
    if (!rows) return failure(rows.error());
    account_.rows = std::move(*rows);
    for (;;) {
      const auto topic = next_topic();
      if (!topic) return failure(topic.error());
      if (!*topic) break;
      if (Status done = walk_topic(**topic); !done) return failure(done.error());
    }
    if (Status done = judge_strays(); !done) return failure(done.error());
    if (Status done = judge_expected(); !done) return failure(done.error());
    return account_;
  }

 private:
  // --- Which topic, which partition ----------------------------------------------------------------------

  // Topics are in the order of their bytes everywhere: the least of what stands next is next.
  Result<std::optional<std::string>> next_topic() {
    std::optional<std::string> least;
    const auto take = [&](const std::string& topic) {
      if (!least || topic < *least) least = topic;
    };
    if (topic_at_ < outbox_.topics().size()) take(outbox_.topics()[topic_at_]);
    const auto row = outbox_.sent().peek();
    if (!row) return failure(row.error());
    if (*row != nullptr) take((*row)->topic);
    for (ConsumerSide& c : consumers_) {
      const auto processed = c.processed().peek();
      if (!processed) return failure(processed.error());
      if (*processed != nullptr) take((*processed)->topic);
    }
    if (least && topic_at_ < outbox_.topics().size() && outbox_.topics()[topic_at_] == *least) ++topic_at_;
    return least;
  }

  Status walk_topic(const std::string& topic) {
    const auto partitions = kafka_.partitions(topic, options_.patience);
    if (!partitions) return failure(partitions.error());
    place_ = {.topic = topic};
    const std::int32_t count = partitions->value_or(0);
    for (std::int32_t p = 0; p < count; ++p)
      if (Status done = walk_partition(topic, p); !done) return done;
    place_ = {.topic = topic, .partition = count};
    const bool gone = !*partitions;
    return pass_until(topic, std::numeric_limits<std::int32_t>::max(), no_offset,
                      gone ? Absence::topic_gone : Absence::no_partition);
  }

  Status walk_partition(const std::string& topic, std::int32_t partition) {
    // What names no partition stands before the first one.
    if (Status done = pass_until(topic, partition - 1, no_offset, Absence::no_partition); !done) return done;
    place_ = {.topic = topic, .partition = partition};
    if (Status asked = ask_ends(); !asked) return asked;
    const auto from = start_of(topic, partition);
    if (!from) return failure(from.error());
    if (Status started = kafka_.start(topic, partition, *from, place_.ends.stable); !started) return started;
    for (;;) {
      const auto record = kafka_.next(options_.patience);
      if (!record) return failure(record.error());
      const std::int64_t offset = *record ? (*record)->offset : no_offset;
      if (Status done = pass_until(topic, partition, offset, Absence::no_record); !done) return done;
      if (!*record) return {};
      if (Status done = judge_record(**record); !done) return done;
    }
  }

  // Everything, or from a moment on: then what rows and consumers point at decides, and the moment itself.
  Result<std::int64_t> start_of(const std::string& topic, std::int32_t partition) {
    const WallTime since = outbox_.span().since;
    if (since == WallTime::min()) return place_.ends.low;
    const auto at = kafka_.offset_at(topic, partition, since - early, options_.patience);
    if (!at) return failure(at.error());
    std::int64_t from = *at;
    const auto row = outbox_.sent().peek();
    if (!row) return failure(row.error());
    if (*row != nullptr && here(**row)) from = std::min(from, (*row)->offset);
    for (ConsumerSide& c : consumers_) {
      const auto processed = c.processed().peek();
      if (!processed) return failure(processed.error());
      if (*processed != nullptr && here(**processed)) from = std::min(from, (*processed)->offset);
    }
    return std::max(from, place_.ends.low);
  }

  template <class Row>
  bool here(const Row& row) const {
    return row.topic == place_.topic && row.partition == place_.partition;
  }

  Status ask_ends() {
    const auto ends = kafka_.ends(place_.topic, place_.partition, options_.patience);
    if (!ends) return failure(ends.error());
    place_.ends = *ends;
    place_.asked = std::chrono::steady_clock::now();
    return {};
  }

  // --- What has no record --------------------------------------------------------------------------------

  enum class Absence { no_record, no_partition, topic_gone };

  // Rows and processed ones before (partition, offset) of the topic have no record there.
  Status pass_until(const std::string& topic, std::int32_t partition, std::int64_t offset, Absence absence) {
    const auto before = [&](const auto& row) {
      return row.topic == topic &&
             (row.partition < partition || (row.partition == partition && row.offset < offset));
    };
    for (;;) {
      const auto row = outbox_.sent().peek();
      if (!row) return failure(row.error());
      if (*row == nullptr || !before(**row)) break;
      if (Status done = judge_absent(**row, absence); !done) return done;
      if (Status done = expect(**row); !done) return done;
      outbox_.sent().pop();
    }
    for (std::size_t i = 0; i < consumers_.size(); ++i) {
      auto& processed = consumers_[i].processed();
      for (;;) {
        const auto row = processed.peek();
        if (!row) return failure(row.error());
        if (*row == nullptr || !before(**row)) break;
        if (Status done = judge_absent(**row, absence, i); !done) return done;
        processed.pop();
      }
    }
    return {};
  }

  // Why a record is not there, where that says nothing against the one who points at it.
  Result<std::optional<Unknown>> excuse(std::int64_t offset, Absence absence) {
    if (absence == Absence::topic_gone) return std::optional{Unknown::topic_gone};
    if (absence == Absence::no_partition) return std::optional<Unknown>{};
    if (offset >= place_.ends.high) return std::optional<Unknown>{};
    if (offset >= place_.ends.stable) return std::optional{Unknown::record_hidden};
    if (offset >= place_.ends.low && std::chrono::steady_clock::now() - place_.asked > ends_for) {
      const PartitionEnds read = place_.ends;
      if (Status asked = ask_ends(); !asked) return failure(asked.error());
      place_.ends.stable = read.stable;  // this far it was read
      place_.ends.high = read.high;
    }
    if (offset < place_.ends.low) return std::optional{Unknown::record_expired};
    if (options_.compacted && options_.compacted(place_.topic))
      return std::optional{Unknown::record_compacted};
    return std::optional<Unknown>{};
  }

  std::string absent_text(std::int32_t partition, std::int64_t offset, Absence absence) const {
    if (partition < 0 || offset < 0) return "it names no record";
    if (absence == Absence::no_partition) return "the topic has no such partition";
    if (offset >= place_.ends.high) return "the partition ends at " + std::to_string(place_.ends.high);
    return "there is no record at this offset that was committed";
  }

  Status judge_absent(const SentRow& row, Absence absence) {
    const auto why = excuse(row.offset, absence);
    if (!why) return failure(why.error());
    if (*why && row.offset >= 0)
      account_.kafka.unknown[**why] += 1;
    else
      say(account_.kafka, of(row, Wrong::missing, absent_text(row.partition, row.offset, absence)));
    return {};
  }

  Status judge_absent(const ProcessedRow& row, Absence absence, std::size_t consumer) {
    const auto why = excuse(row.offset, absence);
    if (!why) return failure(why.error());
    Side& side = account_.consumers[consumer];
    if (*why)
      side.unknown[**why] += 1;
    else
      say(side,
          of(row, side.name, "it was processed, and " + absent_text(row.partition, row.offset, absence)));
    return {};
  }

  // --- What has one --------------------------------------------------------------------------------------

  Status judge_record(const ReadRecord& record) {
    const auto own = own_record(record, options_.source);
    bool placed = false;
    for (;;) {
      const auto row = outbox_.sent().peek();
      if (!row) return failure(row.error());
      if (*row == nullptr || !here(**row) || (*row)->offset != record.offset) break;
      placed = judge_row(**row, record, own) || placed;
      if (Status done = expect(**row); !done) return done;
      outbox_.sent().pop();
    }
    for (std::size_t i = 0; i < consumers_.size(); ++i) {
      auto& processed = consumers_[i].processed();
      for (;;) {
        const auto row = processed.peek();
        if (!row) return failure(row.error());
        if (*row == nullptr || !here(**row) || (*row)->offset != record.offset) break;
        if (own && own->msg_id != (*row)->msg_id)
          say(account_.consumers[i],
              of(**row, consumers_[i].name(), "it was processed, and its record holds another message"));
        processed.pop();
      }
    }
    if (!own) {
      account_.kafka.counted["records of other sources"] += 1;
      return {};
    }
    account_.kafka.counted["records of this outbox"] += 1;
    if (placed || !asked_for(*own)) return {};
    strays_.push_back({*own, place_.topic, place_.partition, record.offset, record.at});
    return strays_.size() < batch_max ? Status{} : judge_strays();
  }

  bool asked_for(const OwnRecord& own) const {
    if (!own.created_at) return true;
    return *own.created_at >= outbox_.span().since && *own.created_at < outbox_.span().until;
  }

  // True: the record is this row's.
  bool judge_row(const SentRow& row, const ReadRecord& record, const std::optional<OwnRecord>& own) {
    if (!own || own->msg_id != row.msg_id) {
      say(account_.kafka, of(row, Wrong::conflicting, "the record at this offset holds another message"));
      return false;
    }
    if (record.key != std::optional<std::string_view>{row.key})
      say(account_.kafka, of(row, Wrong::conflicting, "the record has another key than the row"));
    else if (own->body != row.body)
      say(account_.kafka, of(row, Wrong::conflicting, "the record has another body than the row"));
    else
      account_.kafka.counted["verified"] += 1;
    return true;
  }

  // --- Records whose row is somewhere else ---------------------------------------------------------------

  Status judge_strays() {
    std::vector<Stray> known;
    std::vector<std::int64_t> ids;
    std::vector<WallTime> created_at;
    for (Stray& s : std::exchange(strays_, {})) {
      if (!s.own.msg_id || !s.own.id || !s.own.created_at) {
        say(account_.kafka, of(s, Wrong::orphan, "its outbox- headers are not as a relay writes them"));
        continue;
      }
      ids.push_back(*s.own.id);
      created_at.push_back(*s.own.created_at);
      known.push_back(std::move(s));
    }
    if (known.empty()) return {};
    const auto rows = outbox_.look_up(ids, created_at);
    if (!rows) return failure(rows.error());
    for (std::size_t i = 0; i < known.size(); ++i)
      if (Status done = judge_stray(known[i], (*rows)[i]); !done) return done;
    return {};
  }

  // Deleted when it was sent, or later with its day, by a purge, or as old.
  bool may_be_gone(const Stray& s) const {
    const RowSpan& span = outbox_.span();
    return options_.rows_are_deleted || *s.own.created_at < span.floor ||
           (options_.rows_kept_for && s.at < span.now - *options_.rows_kept_for);
  }

  Status judge_stray(const Stray& s, const std::optional<RowState>& row) {
    Side& kafka = account_.kafka;
    if (!row) {
      if (!may_be_gone(s)) {
        say(kafka, of(s, Wrong::orphan, "the outbox has no such row"));
        return {};
      }
      kafka.unknown[Unknown::row_gone] += 1;
      return expect({*s.own.id, *s.own.msg_id, s.topic, s.partition, s.offset, s.own.body, s.at});
    }
    if (row->msg_id != *s.own.msg_id)
      say(kafka, of(s, Wrong::orphan, "the row of this id is another message: " + to_string(row->msg_id)));
    else if (row->status == "SENT" && row->partition == s.partition && row->offset == s.offset)
      kafka.counted["sent while this ran"] += 1;
    else if (row->generation > 0)
      kafka.counted["copies that a replay or a retry explains"] += 1;
    else if (row->status == "SENT")
      say(kafka, of(s, Wrong::repeated,
                    "its row names partition " + std::to_string(row->partition) + ", offset " +
                        std::to_string(row->offset)));
    else if (row->status == "PENDING" || row->status == "HELD")
      kafka.counted["acknowledged and not marked yet"] += 1;
    else
      say(kafka, of(s, Wrong::conflicting, "its row is " + row->status));
    return {};
  }

  // --- What consumers should have ------------------------------------------------------------------------

  Status expect(const SentRow& row) {
    return expect({row.id, row.msg_id, row.topic, row.partition, row.offset, row.body, row.sent_at});
  }

  Status expect(Expected message) {
    if (consumers_.empty()) return {};
    expected_.push_back(std::move(message));
    return expected_.size() < batch_max ? Status{} : judge_expected();
  }

  Status judge_expected() {
    const auto expected = std::exchange(expected_, {});
    std::vector<Finding> found;
    for (std::size_t i = 0; i < consumers_.size(); ++i) {
      Status done =
          consumers_[i].judge(expected, outbox_.span().now - options_.grace, account_.consumers[i], found);
      if (!done) return done;
      for (const Finding& f : std::exchange(found, {})) say(account_.consumers[i], f);
    }
    return {};
  }

  // ------------------------------------------------------------------------------------------------------------------

  void say(Side& side, const Finding& finding) {
    side.wrong[finding.wrong] += 1;
    found_(finding);
  }
  static Finding of(const SentRow& row, Wrong wrong, std::string detail) {
    return {wrong,     "kafka",       row.id,     to_string(row.msg_id),
            row.topic, row.partition, row.offset, std::move(detail)};
  }
  static Finding of(const ProcessedRow& row, const std::string& consumer, std::string detail) {
    return {Wrong::orphan, consumer,      0,          to_string(row.msg_id),
            row.topic,     row.partition, row.offset, std::move(detail)};
  }
  static Finding of(const Stray& s, Wrong wrong, std::string detail) {
    return {
        wrong,       "kafka",  s.own.id.value_or(0), s.own.msg_id ? to_string(*s.own.msg_id) : "", s.topic,
        s.partition, s.offset, std::move(detail)};
  }

  OutboxSide& outbox_;
  std::vector<ConsumerSide>& consumers_;
  relay::KafkaReader& kafka_;
  const ReconcileOptions& options_;
  const std::function<void(const Finding&)>& found_;
  Account account_{};
  std::size_t topic_at_ = 0;
  Place place_{};
  std::vector<Stray> strays_{};
  std::vector<Expected> expected_{};
};

}  // namespace

Result<Account> reconcile(OutboxSide& outbox, std::vector<ConsumerSide>& consumers, relay::KafkaReader& kafka,
                          const ReconcileOptions& options, const std::function<void(const Finding&)>& found) {
  return Walk{outbox, consumers, kafka, options, found}.run();
}

}  // namespace outbox::commands
