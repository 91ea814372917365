-- What the outbox says was sent and where to, in the order of the records: the server sorts, on its disk where it must.
-- Filled in: table, body_octets. Locks: none. Index: none; days outside of the times are not read.
-- Parameters: $1 text[] topics, null: all · $2, $3 timestamptz, created_at from and before · $4, $5 text[], topics and what Kafka
-- calls them, in the same order; one that is not among them has its own name there.
DECLARE reconciled NO SCROLL CURSOR FOR
SELECT o.id, o.msg_id, coalesce(k.name, o.topic::text) COLLATE "C", o.msg_key::text, coalesce(o.kafka_partition, -1), coalesce(o.kafka_offset, -1),
       o.generation, sha256({{body_octets}}), coalesce(o.sent_at, o.created_at)
FROM {{table}} o LEFT JOIN unnest($4::text[], $5::text[]) k(topic, name) ON k.topic = o.topic::text
WHERE o.status = 'SENT' AND ($1::text[] IS NULL OR o.topic = ANY ($1))
  AND o.created_at >= $2::timestamptz AND o.created_at < $3::timestamptz
ORDER BY 3, coalesce(o.kafka_partition, -1), coalesce(o.kafka_offset, -1), o.id
