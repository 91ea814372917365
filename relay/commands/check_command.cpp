// `outboxd check`: looks at configuration, database and cluster, and says what is wrong with them and what to
// do; `outboxd check partition KEY TOPIC`: where a key goes.

#include <CLI/CLI.hpp>
#include <librdkafka/rdkafka.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "relay/check/judge.hpp"
#include "relay/commands/command_line.hpp"
#include "relay/commands/configured.hpp"
#include "relay/commands/migrate/migration_sets.hpp"
#include "relay/commands/topic_options.hpp"
#include "relay/core/kafka/partitioner.hpp"
#include "relay/core/kafka/version.hpp"
#include "relay/postgres/source_facts.hpp"
#include "sql/queries/relay.hpp"

namespace outbox::commands {
namespace {

using relay::Finding;
using relay::Findings;
using relay::Severity;

constexpr Millis kafka_patience{10'000};

struct Asked {
  std::string file;
  std::string pipeline;
  bool json = false;
  int old_transaction_s = 300;
  std::string key;
  std::string topic;
};

void append(Findings& to, Findings more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// A refusal needs a change, silence needs a server.
Finding failed(std::string check, const Error& error) {
  const bool away = exit_code_of(error) == ExitCode::unreachable;
  return {std::move(check), away ? Severity::away : Severity::error,
          error.message + (error.code.empty() ? "" : " (" + error.code + ")"), error.advice};
}

ExitCode code_of(Severity severity) {
  switch (severity) {
    case Severity::ok:
    case Severity::note:
      return ExitCode::ok;
    case Severity::warning:
      return ExitCode::failed;
    case Severity::error:
      return ExitCode::refused;
    case Severity::away:
      return ExitCode::unreachable;
  }
  return ExitCode::failed;
}

Result<pg::Session> connect(const config::Pipeline& pipeline) {
  pg::ConnectOptions options;
  options.uri = pipeline.postgres.uri;
  options.application_name = "outboxd check";
  return pg::Session::connect(options);
}

std::map<std::string, std::int64_t> newest_migrations() {
  std::map<std::string, std::int64_t> newest;
  for (const relay::MigrationSet& set : relay::migration_sets())
    newest[std::string(set.name)] = static_cast<std::int64_t>(set.migrations.size());
  return newest;
}

// Answers the topics to ask Kafka about.
std::vector<relay::WaitingTopic> examine_table(pg::Session& session, const config::Pipeline& pipeline,
                                               const relay::JudgeLimits& limits, Findings& out) {
  const auto table = pg::parse_table_name(pipeline.source.table).value();
  if (const auto fit = relay::inspect(session, table, partition_column_of(pipeline)); !fit) {
    out.push_back(failed("table.fit", fit.error()));
    return {};
  }
  out.push_back(
      {"table.fit", Severity::ok, pipeline.source.table + " is there, with the rights to work it", ""});
  if (const auto facts = relay::read_table_facts(session, table); facts)
    append(out, relay::judge_table(*facts, pipeline, newest_migrations(), limits));
  else
    out.push_back(failed("table.facts", facts.error()));
  auto topics = relay::read_waiting_topics(session, table);
  if (!topics) out.push_back(failed("table.topics", topics.error()));
  return topics ? std::move(*topics) : std::vector<relay::WaitingTopic>{};
}

std::vector<relay::WaitingTopic> examine_postgres(const config::Pipeline& pipeline,
                                                  relay::JudgeLimits& limits, Findings& out) {
  auto session = connect(pipeline);
  if (!session) {
    out.push_back(failed("postgres.reachable", session.error()));
    return {};
  }
  out.push_back({"postgres.reachable", Severity::ok, "connected", ""});
  if (const auto facts = relay::read_server_facts(*session); facts)
    append(out, relay::judge_server(*facts, pipeline, limits));
  else
    out.push_back(failed("postgres.facts", facts.error()));
  auto waiting = examine_table(*session, pipeline, limits, out);
  const auto memory =
      relay::read_shortest_memory(*session, pg::parse_table_name(pipeline.source.table).value());
  if (memory)
    limits.memory = *memory;
  else if (memory.error().code != "42P01")  // a drop-in table has no consumers beside it
    out.push_back({"table.consumers", Severity::note,
                   "what consumers remember cannot be read: " + memory.error().message,
                   "run `outboxd migrate --grants` as the tables' owner"});
  return waiting;
}

void examine_library(Findings& out) {
  const auto verdict = relay::judge_kafka_version(rd_kafka_version());
  const std::string is = "librdkafka " + std::string{rd_kafka_version_str()};
  if (verdict.notes.empty())
    out.push_back({"kafka.library", Severity::ok, is, ""});
  else
    out.push_back({"kafka.library", verdict.refused ? Severity::error : Severity::note,
                   is + ": " + verdict.text(), ""});
}

// What rows wait for and may go to, by what Kafka calls it.
std::vector<relay::WaitingTopic> allowed(std::vector<relay::WaitingTopic> waiting,
                                         const config::Pipeline& pipeline, Findings& out) {
  auto map = topic_map(pipeline.topics);
  if (!map) {
    out.push_back(failed("config.topics", map.error()));
    return {};
  }
  map->reserve(ledger_topic(pipeline));
  std::erase_if(waiting, [&](relay::WaitingTopic& topic) {
    topic.kafka = map->to_kafka(topic.topic);
    const auto refusal = map->refusal(topic.topic);
    if (!refusal) return false;
    if (topic.rows > 0)
      out.push_back({"config.topics_allow", Severity::warning,
                     "topic " + topic.topic + ": " + std::string{*refusal} + "; " +
                         std::to_string(topic.rows) + " rows wait for it",
                     "add it to topics.allow, or correct the rows' topic"});
    return true;
  });
  return waiting;
}

void examine_kafka(const config::Pipeline& pipeline, std::vector<relay::WaitingTopic> found,
                   const relay::JudgeLimits& limits, Findings& out) {
  const auto waiting = allowed(std::move(found), pipeline, out);
  std::vector<std::string> topics;
  for (const auto& topic : waiting)
    if (std::ranges::find(topics, topic.kafka) == topics.end()) topics.push_back(topic.kafka);
  if (const auto ledger = relay::ledger_of(pipeline);
      ledger && std::ranges::find(topics, *ledger) == topics.end())
    topics.push_back(*ledger);
  relay::KafkaOptions options;
  options.properties = pipeline.kafka;
  const auto facts = relay::read_cluster_facts(options, topics, kafka_patience);
  if (!facts) {
    out.push_back(failed("kafka.reachable", facts.error()));
    return;
  }
  append(out, relay::judge_cluster(*facts, waiting, pipeline, limits));
  append(out, relay::judge_ledger(*facts, pipeline));
  append(out, relay::judge_access(*facts, pipeline));
}

std::optional<unsigned> mode_of(const std::string& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return std::nullopt;
  return found.st_mode & 07777U;
}

ExitCode check(const Asked& asked) {
  const auto loaded = load_or_report(asked.file);
  if (!loaded) return loaded.error();
  const auto pipelines = select_or_report(loaded->config, asked.pipeline);
  if (!pipelines) return pipelines.error();
  ExitCode code = ExitCode::ok;
  for (const config::Pipeline& p : *pipelines) {
    relay::JudgeLimits limits{.transaction_age = Millis{asked.old_transaction_s * 1000LL}};
    Findings findings = relay::judge_config(loaded->config, p, mode_of(config_path(asked.file)));
    auto waiting = examine_postgres(p, limits, findings);
    examine_library(findings);
    examine_kafka(p, std::move(waiting), limits, findings);
    code = worse(code, code_of(relay::worst(findings)));
    const std::string out =
        asked.json ? relay::findings_json(p.name, findings) + "\n" : relay::findings_text(p.name, findings);
    if (std::fputs(out.c_str(), stdout) < 0) return ExitCode::failed;
  }
  return code;
}

// The count that is pinned in the database; the cluster's where there is none yet.
Result<std::pair<std::int32_t, bool>> partitions_of(const config::Pipeline& pipeline,
                                                    const std::string& topic) {
  const auto table = pg::parse_table_name(pipeline.source.table).value();
  auto session = connect(pipeline);
  if (!session) return failure(session.error());
  pg::Params params;
  params.text(table.schema + "." + table.table).text(topic);
  const auto rows = session->exec(
      pg::fill_template(sql::queries::source_pinned, {{"schema", table.quoted_schema()}}), params);
  if (!rows) return failure(rows.error());
  if (!rows->empty()) return std::pair{static_cast<std::int32_t>(rows->integer(0, 0)), true};
  relay::KafkaOptions options;
  options.properties = pipeline.kafka;
  const auto map = topic_map(pipeline.topics);
  if (!map) return failure(map.error());
  const auto facts = relay::read_cluster_facts(options, {map->to_kafka(topic)}, kafka_patience);
  if (!facts) return failure(facts.error());
  if (facts->topics.front().state != relay::TopicState::present)
    return failure(Disposition::fatal,
                   "topic " + facts->topics.front().topic + ": " + facts->topics.front().reason);
  return std::pair{facts->topics.front().partitions, false};
}

ExitCode check_partition(const Asked& asked) {
  const auto pipelines = pipelines_or_report(asked.file, asked.pipeline);
  if (!pipelines) return pipelines.error();
  ExitCode code = ExitCode::ok;
  for (const config::Pipeline& p : *pipelines) {
    const auto partitions = partitions_of(p, asked.topic);
    if (!partitions) {
      code = worse(code, report(p.name, partitions.error()));
      continue;
    }
    const auto [count, pinned] = *partitions;
    const auto partition = relay::partition_of_key(asked.key, count).value;
    if (asked.json) {
      const nlohmann::json out{{"pipeline", p.name},     {"topic", asked.topic}, {"key", asked.key},
                               {"partition", partition}, {"partitions", count},  {"pinned", pinned}};
      std::printf("%s\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    } else {
      std::printf("%s: partition %d of %d (%s)\n", p.name.c_str(), partition, count,
                  pinned ? "pinned" : "not pinned yet: the topic's present count");
    }
  }
  return code;
}

}  // namespace

void declare_check(CLI::App& app, Action& chosen) {
  auto asked = std::make_shared<Asked>();
  CLI::App* command = app.add_subcommand(
      "check", "What is wrong with configuration, database and cluster, and what to do about it");
  declare_config_file(*command, asked->file);
  declare_pipeline(*command, asked->pipeline);
  command->add_flag("--json", asked->json, "One JSON object a pipeline");
  command
      ->add_option("--old-transaction", asked->old_transaction_s,
                   "Seconds after which an open transaction is too old")
      ->check(CLI::Range(0, 86'400))
      ->capture_default_str();
  command->footer(
      "Exit status: 0 all well, or notes only; 1 the worst is a warning; 4 an error; 3 a server did not "
      "answer.");
  CLI::App* partition = command->add_subcommand("partition", "Where Kafka gets the messages of a key");
  partition->add_option("key", asked->key, "The key")->required()->type_name("KEY");
  partition->add_option("topic", asked->topic, "The topic")->required()->type_name("TOPIC");
  partition->fallthrough();
  command->callback([asked, partition, &chosen] {
    chosen = [asked, of_key = partition->parsed()] {
      return of_key ? check_partition(*asked) : check(*asked);
    };
  });
}

}  // namespace outbox::commands
