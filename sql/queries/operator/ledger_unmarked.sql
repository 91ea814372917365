-- How many rows that a ledger names are not marked: in Kafka, and PENDING or HELD in the table.
-- Filled in: table. Parameters: $1 bigint[] ids · $2 uuid[] msg_ids · $3 int[] generations.
-- Locks: none. Index: the primary key of each partition.
SELECT count(*)
  FROM unnest($1::bigint[], $2::uuid[], $3::int[]) AS s (id, msg_id, generation)
  JOIN {{table}} AS m ON m.id = s.id AND m.msg_id = s.msg_id AND m.generation = s.generation AND m.status IN ('PENDING', 'HELD')
