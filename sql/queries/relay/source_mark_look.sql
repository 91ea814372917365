-- How rows that a mark did not find stand now, by id, so that each can be explained. Another row may have
-- an id by now, or several have it: their msg_ids tell them apart.
-- Parameters: $1 bigint[] ids. Locks: none. Index: the primary key of each partition.
SELECT m.id, m.tableoid, m.ctid, m.status, m.generation, m.kafka_partition, m.kafka_offset, m.msg_id, m.shard
  FROM {{table}} AS m
 WHERE m.id = ANY ($1::bigint[])
