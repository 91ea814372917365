-- How many rows are not sent, by what they wait for, and how long the oldest of those that could be sent has waited.
-- Filled in: table. Parameters: none. Locks: none.
-- Index: (shard, id) of pending rows, (available_at, id) of scheduled ones, (topic, msg_key, id) of held and dead ones.
-- The oldest is the first row by id of each shard: 64 probes instead of a look at every waiting row.
SELECT
  (SELECT count(*) FROM {{table}} WHERE status = 'PENDING' AND available_at IS NULL) AS pending,
  (SELECT count(*) FROM {{table}} WHERE status = 'PENDING' AND available_at <= clock_timestamp()) AS due,
  (SELECT count(*) FROM {{table}} WHERE status = 'PENDING' AND available_at > clock_timestamp()) AS scheduled,
  (SELECT count(*) FROM {{table}} WHERE status IN ('HELD', 'DEAD') AND status = 'HELD') AS held,
  (SELECT count(*) FROM {{table}} WHERE status IN ('HELD', 'DEAD') AND status = 'DEAD') AS dead,
  (extract(epoch FROM clock_timestamp() - least(
     (SELECT min(o.created_at)
      FROM generate_series(0, 63) AS s (shard)
      CROSS JOIN LATERAL (SELECT p.created_at FROM {{table}} p
                          WHERE p.status = 'PENDING' AND p.available_at IS NULL AND p.shard = s.shard::smallint
                          ORDER BY p.id LIMIT 1) o),
     (SELECT min(available_at) FROM {{table}}
      WHERE status = 'PENDING' AND available_at <= clock_timestamp()))) * 1000)::bigint AS oldest_ms
