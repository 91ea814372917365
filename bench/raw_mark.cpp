#include "bench/raw_mark.hpp"

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "relay/postgres/mark_rows.hpp"
#include "relay/postgres/source_sql.hpp"

namespace bench {
namespace {

using namespace outbox;
using pg::Params;
using pg::Rows;
using pg::Session;
using test::must;

constexpr std::int16_t lanes = 8;
constexpr int batch_rows = 5'000;
constexpr std::int64_t batch_bytes = 8 << 20;
constexpr int shards_of_lane = relay::shard_count / lanes;
constexpr const char* source = "public.outbox_msg";

constexpr std::string_view plain_select =
    "SELECT m.tableoid, m.ctid, m.id, m.shard, m.generation, m.msg_id, m.created_at, m.topic, m.msg_key, "
    "m.headers,"
    "       m.body"
    "  FROM unnest($1::smallint[]) AS s (shard)"
    " CROSS JOIN LATERAL (SELECT m.tableoid, m.ctid, m.* FROM public.outbox_msg AS m"
    "                      WHERE m.shard = s.shard AND m.status = 'PENDING' AND m.available_at IS NULL"
    "                      ORDER BY m.id LIMIT $2::int) m";

class Loop {
 public:
  Loop(const Stage& stage, const std::string& database, Select select)
      : session_(must(Session::connect({.uri = stage.uri(database, "outbox_relay")}))), select_(select) {}

  /// Until the lanes from `first` on, every `step`th, are empty. Returns the rows marked.
  long long drain(int first, int step) {
    long long rows = 0;
    for (bool more = true; more;) {
      more = false;
      for (int lane = first; lane < lanes; lane += step) {
        const std::vector<relay::SentRow> batch = claim(static_cast<std::int16_t>(lane));
        if (batch.empty()) continue;
        mark(batch);
        rows += std::ssize(batch);
        more = true;
      }
    }
    return rows;
  }

 private:
  std::vector<relay::SentRow> claim(std::int16_t lane) {
    Rows rows;
    must(session_.transaction([&](Session& session) -> Status {
      must(session.exec_prepared(*sql_.settings, {}));
      rows =
          must(session.exec_prepared(select_ == Select::relays ? *sql_.claim_by_shard : plain_select,
                                     select_ == Select::relays ? relays_params(lane) : plain_params(lane)));
      return {};
    }));
    std::vector<relay::SentRow> batch;
    batch.reserve(static_cast<std::size_t>(rows.size()));
    for (int i = 0; i < rows.size(); ++i) batch.push_back(sent(rows, i, lane));
    return batch;
  }

  static std::vector<std::int16_t> shards_of(std::int16_t lane) {
    std::vector<std::int16_t> shards;
    for (std::int16_t shard = lane; shard < relay::shard_count;
         shard = static_cast<std::int16_t>(shard + lanes))
      shards.push_back(shard);
    return shards;
  }
  static Params relays_params(std::int16_t lane) {
    Params params;
    params.i16s(shards_of(lane)).i32(batch_rows / shards_of_lane).i64(batch_bytes / shards_of_lane);
    params.i16(-1).i64(0).null().text(source);
    params.i64s(std::vector<std::int64_t>(shards_of_lane)).i64(-1).uuids({});  // no floors
    return params;
  }
  static Params plain_params(std::int16_t lane) {
    Params params;
    params.i16s(shards_of(lane)).i32(batch_rows / shards_of_lane);
    return params;
  }

  static relay::SentRow sent(const Rows& rows, int i, std::int16_t lane) {
    const pg::Tid tid = rows.tid(i, 1);
    return {.id = relay::RowId{rows.integer(i, 2)},
            .msg_id = rows.uuid(i, 5),
            .address = {static_cast<std::uint32_t>(rows.integer(i, 0)), tid.block, tid.offset},
            .generation = static_cast<std::int32_t>(rows.integer(i, 4)),
            .lease = {relay::LaneId{lane}, relay::Epoch{1}},
            .partition = relay::Partition{0},
            .offset = relay::Offset{i}};
  }

  const std::string& mark_sql(std::uint32_t table) {
    auto& known = mark_sql_[table];
    if (!known) {
      Params params;
      params.oids(std::vector<pg::Oid>{table});
      const Rows names = must(session_.exec_prepared(*sql_.partition_names, params));
      known = std::make_unique<relay::PartitionSql>(pg::TableName{"public", "outbox_msg"},
                                                    std::string(names.text(0, 1)));
    }
    return *known->mark;
  }

  void mark(const std::vector<relay::SentRow>& batch) {
    const relay::LeaseList leases(batch);
    for (const auto& [table, rows] : relay::by_partition(batch)) {
      const std::string& sql = mark_sql(table);
      must(session_.transaction([&, &rows = rows](Session& session) -> Status {
        must(session.exec_prepared(*sql_.settings, {}));
        must(session.exec_prepared(*sql_.mark_settings, {}));
        const Rows marked = must(session.exec_prepared(sql, relay::mark_params(rows, leases, source)));
        if (marked.affected() != std::ssize(rows)) throw std::runtime_error("a raw mark missed rows");
        return {};
      }));
    }
  }

  Session session_;
  Select select_;
  relay::SourceSql sql_{{"public", "outbox_msg"}, relay::BodyColumn::json};
  std::map<std::uint32_t, std::unique_ptr<relay::PartitionSql>> mark_sql_;
};

void take_lanes(const Stage& stage, const std::string& database) {
  Session owner = stage.session(database);
  must(
      owner.exec("INSERT INTO public.outbox_lease (source, lane, lanes, generation, owner, epoch, "
                 "lease_until, renewed_at)"
                 " SELECT 'public.outbox_msg', lane, 8, 1, 'bench', 1, 'infinity', now() FROM "
                 "generate_series(0, 7) lane"));
}

}  // namespace

double mark_rate(const Stage& stage, const std::string& database, Select select, int connections) {
  take_lanes(stage, database);
  std::vector<std::unique_ptr<Loop>> loops;
  loops.reserve(static_cast<std::size_t>(connections));
  for (int i = 0; i < connections; ++i) loops.push_back(std::make_unique<Loop>(stage, database, select));
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::future<long long>> results;
  results.reserve(static_cast<std::size_t>(connections));
  for (int i = 0; i < connections; ++i) {
    results.push_back(std::async(
        std::launch::async, [&, i] { return loops[static_cast<std::size_t>(i)]->drain(i, connections); }));
  }
  long long rows = 0;
  for (auto& result : results) rows += result.get();
  return static_cast<double>(rows) /
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace bench
