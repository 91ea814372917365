-- Forgets a batch of ids without a time (the function's comment says how). Filled in: schema. Answers the ids.
-- Parameters: $1 int8 operation · $2 text consumer · $3 uuid, only ids above · $4 timestamptz processed before
--   · $5 int4 rows at most. Locks: the rows. Index: the primary key of processed_msgs_timeless.
SELECT r.id FROM {{schema}}.inbox_purge_timeless($1, $2, $3::uuid, $4::timestamptz, $5::int) AS r (id)
