#include "bench/large_rows.hpp"

#include "bench/drain.hpp"

namespace bench {

using outbox::test::must;

namespace {

// Each body is another window of one random text, stored as it is: to compress it would take longer than the
// drain.
void load(outbox::pg::Session& session, const std::string& topic, int rows) {
  must(
      session.exec_script("ALTER TABLE public.outbox_msg ALTER body SET STORAGE EXTERNAL;"
                          "SET synchronous_commit = off;"
                          "CREATE TEMP TABLE pad AS SELECT string_agg(md5(random()::text || i), '') AS hex "
                          "FROM generate_series(1, 32768) i;"));
  outbox::pg::Params params;
  params.text(topic).i32(rows).i32(keys);
  must(session.exec(
      "INSERT INTO public.outbox_msg (topic, msg_key, body)"
      " SELECT $1, 'key-' || i % $3, ('\"' || substr(hex, 1 + i * 37 % 48000, 999998) || '\"')::json"
      "   FROM pad, generate_series(0, $2::int - 1) i",
      params));
}

}  // namespace

void measure_large_rows(Stage& stage, const Options& options, Figures& figures) {
  const std::string topic = outbox::test::KafkaCluster::unique_topic("large");
  Figures::say(std::to_string(options.large_rows) + " rows of 1 MB");
  stage.make_database("large");
  {
    outbox::pg::Session session = stage.session("large");
    load(session, topic, options.large_rows);
  }
  stage.kafka().create_topic(
      topic, partitions,
      {{"max.message.bytes", "2000000"}, {"segment.bytes", "100000000"}, {"retention.bytes", "200000000"}});
  const Drained drained = drain(stage, "large", topic, options.large_rows);
  figures.add("rss_large_rows_mib", drained.rss_peak_mib);
  figures.add("drain_large_rows_mb_per_s", options.large_rows / drained.seconds);
  stage.drop_database("large");
  stage.kafka().delete_topic(topic);
}

}  // namespace bench
