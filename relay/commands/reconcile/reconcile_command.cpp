// `outboxd reconcile`: for auditors. Compares what the outbox says was sent with what Kafka holds, and with
// what named consumers have processed. Changes nothing.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "relay/commands/command_line.hpp"
#include "relay/commands/configured.hpp"
#include "relay/commands/reconcile/reconcile.hpp"
#include "relay/commands/topic_options.hpp"
#include "relay/kafka/cluster_facts.hpp"

namespace outbox::commands {
namespace {

constexpr Millis kafka_patience{30'000};
constexpr std::int64_t listed_default = 100;

struct Asked {
  std::string file;
  std::string pipeline;
  std::string uri;
  RowFilter filter;
  std::vector<std::string> consumers;
  ConsumerPlace consumer_place;
  int grace_s = 60;
  std::int64_t limit = listed_default;
  bool strict = false;
  bool json = false;
};

// Topics whose records give way to later ones of their key.
class Compacted {
 public:
  explicit Compacted(relay::KafkaOptions options) : options_(std::move(options)) {}
  bool operator()(const std::string& topic) {
    const auto known = known_.find(topic);
    if (known != known_.end()) return known->second;
    const auto facts = relay::read_cluster_facts(options_, {topic}, kafka_patience);
    const bool compacted =
        facts && facts->topics.front().config.contains("cleanup.policy") &&
        facts->topics.front().config.at("cleanup.policy").find("compact") != std::string::npos;
    return known_[topic] = compacted;
  }

 private:
  relay::KafkaOptions options_;
  std::map<std::string, bool> known_{};
};

Result<std::vector<ConsumerSide>> open_consumers(const Asked& asked, const std::string& uri,
                                                 const OutboxSide& outbox, const relay::TopicMap& in_kafka) {
  ConsumerPlace place = asked.consumer_place;
  if (place.uri.empty()) place.uri = uri;
  std::vector<std::string> topics;
  topics.reserve(asked.filter.topics.size());
  for (const std::string& topic : asked.filter.topics) topics.push_back(in_kafka.to_kafka(topic));
  std::vector<ConsumerSide> out;
  for (const std::string& name : asked.consumers) {
    auto side = ConsumerSide::open(place, name, topics, outbox.topics(), outbox.span().since);
    if (!side) return failure(side.error());
    out.push_back(std::move(*side));
  }
  return out;
}

// Findings as they are met, each kind up to the limit.
class Listing {
 public:
  Listing(const Asked& asked, const std::string& pipeline) : asked_(asked), pipeline_(pipeline) {}
  void operator()(const Finding& finding) {
    if (++listed_[{finding.where, finding.wrong}] > asked_.limit) return;
    const std::string line =
        asked_.json ? finding_json(pipeline_, finding) : finding_text(pipeline_, finding);
    std::fputs(line.c_str(), stdout);
  }

 private:
  const Asked& asked_;
  const std::string& pipeline_;
  std::map<std::pair<std::string, Wrong>, std::int64_t> listed_{};
};

Result<Account> compare(const Asked& asked, const config::Pipeline& p) {
  const std::string uri = asked.uri.empty() ? p.postgres.uri : asked.uri;
  const auto in_kafka = topic_map(p.topics);
  if (!in_kafka) return failure(in_kafka.error());
  auto outbox = OutboxSide::open(uri, pg::parse_table_name(p.source.table).value(), asked.filter, *in_kafka);
  if (!outbox) return failure(outbox.error());
  auto consumers = open_consumers(asked, uri, *outbox, *in_kafka);
  if (!consumers) return failure(consumers.error());
  relay::KafkaOptions options;
  options.properties = p.kafka;
  auto kafka = relay::KafkaReader::make(options);
  if (!kafka) return failure(kafka.error());
  return reconcile(*outbox, *consumers, *kafka,
                   {.source = p.name,
                    .grace = Millis{asked.grace_s * 1000LL},
                    .rows_are_deleted = p.source.after_sent == relay::AfterSent::erase,
                    .rows_kept_for = p.retention.old_rows == relay::OldRows::remove
                                         ? std::optional{p.retention.replay_window}
                                         : std::nullopt,
                    .patience = kafka_patience,
                    .compacted = Compacted{options}},
                   Listing{asked, p.name});
}

// A repeat is what at-least-once promises, and what consumers refuse; twice is wrong where once was promised.
bool all_right(const Asked& asked, const config::Pipeline& p, const Account& account) {
  const bool once = asked.strict || p.delivery == config::Delivery::exactly_once;
  const bool wrong = std::ranges::any_of(
      all_wrongs, [&](Wrong w) { return account.wrong(w) > 0 && (once || w != Wrong::repeated); });
  return !wrong && !(asked.strict && (account.unknown() > 0 || account.rows_are_deleted));
}

// A relay's login may not read who replayed and purged what.
Error advised(Error error) {
  if (error.code == "42501" && error.advice.empty())
    error.advice = "log in as a member of outbox_operator, by --uri";
  return error;
}

ExitCode run(const Asked& asked) {
  const auto pipelines = pipelines_or_report(asked.file, asked.pipeline);
  if (!pipelines) return pipelines.error();
  ExitCode code = ExitCode::ok;
  for (const config::Pipeline& p : *pipelines) {
    const auto account = compare(asked, p);
    if (!account) {
      code = worse(code, report(p.name, advised(account.error())));
      continue;
    }
    const std::string text = asked.json ? account_json(p.name, *account) : account_text(p.name, *account);
    const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
    if (!written || !all_right(asked, p, *account)) code = worse(code, ExitCode::failed);
  }
  return code;
}

}  // namespace

void declare_reconcile(CLI::App& app, Action& chosen) {
  auto asked = std::make_shared<Asked>();
  CLI::App* command = app.add_subcommand(
      "reconcile", "Compare what was sent with what Kafka holds and what consumers have processed");
  declare_config_file(*command, asked->file);
  declare_pipeline(*command, asked->pipeline);
  command->add_option("--uri", asked->uri,
                      "Connection string, such as an auditor's, to a standby; overrides the file's");
  command->add_option("--topic", asked->filter.topics, "Only these topics, as the rows name them")
      ->delimiter(',')
      ->type_name("TOPIC");
  command->add_option("--since", asked->filter.since, "Rows created at this time or later")
      ->type_name("TIME");
  command->add_option("--until", asked->filter.until, "Rows created before this time")->type_name("TIME");
  command
      ->add_option("--consumer", asked->consumers,
                   "Compare with what this consumer has processed, of the topics it reads or of --topic")
      ->delimiter(',')
      ->type_name("NAME");
  command
      ->add_option("--consumer-uri", asked->consumer_place.uri,
                   "The consumers' database, as a libpq URI; default: the outbox's")
      ->envname("OUTBOX_CONSUMER_URI");
  command
      ->add_option("--consumer-schema", asked->consumer_place.schema, "Where processed_msgs is; case matters")
      ->capture_default_str();
  command->add_option("--grace", asked->grace_s, "Seconds that a message may be on its way to a consumer")
      ->check(CLI::Range(0, 86'400 * 30))
      ->capture_default_str();
  command->add_option("--limit", asked->limit, "How many of each kind are listed; all are counted")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->capture_default_str();
  command->add_flag("--strict", asked->strict,
                    "A repeated record, and anything that cannot be known, is a discrepancy too");
  command->add_flag("--json", asked->json, "One JSON object a discrepancy, then one that counts");
  command->footer(
      "Exit status: 0 no discrepancy; 1 there is one; 3 a server did not answer; 4 a server refused. A "
      "record "
      "that stands twice is one where delivery is exactly_once, or with --strict.");
  command->callback([asked, &chosen] { chosen = [asked] { return run(*asked); }; });
}

}  // namespace outbox::commands
