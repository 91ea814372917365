-- Deletes a batch of rows that are settled (the function's comment says how). Filled in: schema. Answers the ids.
-- Parameters: $1 int8 operation · $2 int8, only ids above · $3 text status · $4 timestamptz before · $5 text topic, null: any
--   · $6 int4 rows at most. Locks: the rows (those that somebody else has are left out). Index: primary key.
SELECT r.id FROM {{schema}}.outbox_purge($1, $2, $3, $4::timestamptz, $5, $6::int) AS r (id)
