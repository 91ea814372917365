-- The rows that records name by outbox-seq and outbox-created-at, as they are now. Filled in: table. Locks: none.
-- Index: primary key, one probe each. Parameters: $1 int8[] ids · $2 timestamptz[] created_at.
SELECT u.n, o.msg_id, o.status::text, o.generation, coalesce(o.kafka_partition, -1), coalesce(o.kafka_offset, -1)
FROM unnest($1::bigint[], $2::timestamptz[]) WITH ORDINALITY AS u (id, created_at, n)
JOIN {{table}} o ON o.id = u.id AND o.created_at = u.created_at
