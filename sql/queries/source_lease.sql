-- Takes or renews every lane, or reports who has them (the function's comment says how).
-- Parameters: $1 text source · $2 text owner · $3 int lanes · $4 bigint ttl in milliseconds · $5 real rows sent per second.
-- Locks: the lanes' rows. Index: outbox_lease's key.
SELECT t.lane, t.epoch, t.owner, t.remaining_ms::bigint
  FROM {{schema}}.outbox_lease_take($1, $2, $3::int, $4::bigint * interval '1 millisecond', $5::real) t
 ORDER BY t.lane
