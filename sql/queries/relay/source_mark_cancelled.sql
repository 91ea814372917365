-- A row was cancelled while it was on its way: it is in Kafka, so it is recorded as sent.
-- Parameters: $1 bigint[] ids · $2 uuid[] msg_ids · $3 int[] generations · $4 int[] partitions · $5 bigint[] offsets.
-- Locks: the rows. Index: the primary key of each partition.
UPDATE {{table}} AS m
   SET status = 'SENT', sent_at = now(), kafka_partition = s.kafka_partition, kafka_offset = s.kafka_offset,
       last_error = 'cancelled after it was sent'
  FROM unnest($1::bigint[], $2::uuid[], $3::int[], $4::int[], $5::bigint[])
       AS s (id, msg_id, generation, kafka_partition, kafka_offset)
 WHERE m.id = ANY ($1::bigint[]) AND m.id = s.id AND m.msg_id = s.msg_id AND m.generation = s.generation
   AND m.status = 'CANCELLED'
