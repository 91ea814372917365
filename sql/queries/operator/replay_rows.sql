-- Sends a batch of rows again that were sent (the function's comment says how). Filled in: schema. Answers the ids.
-- Parameters: $1 int8 operation · $2 int8, only ids above · $3 int8[] ids, null: any · $4 text topic, null: any
--   · $5 text key, null: any · $6, $7 timestamptz, created_at from and before, null: open · $8 int4 rows at most.
-- Locks: the rows (those that somebody else has are left out). Index: primary key; days outside of the times are not read.
SELECT r.id FROM {{schema}}.outbox_replay($1, $2, $3::bigint[], $4, $5, $6::timestamptz, $7::timestamptz, $8::int) AS r (id)
