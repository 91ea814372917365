-- What one consumer says it has processed, in the order of the records. Filled in: schema. Locks: none.
-- Index: processed_msgs' primary key, all rows of the consumer.
-- Parameters: $1 text consumer · $2 text[] topics · $3 timestamptz, processed_at from.
DECLARE reconciled NO SCROLL CURSOR FOR
SELECT p.msg_id, p.topic, p.partition, p."offset"
FROM {{schema}}.processed_msgs p
WHERE p.consumer = $1 AND p.topic = ANY ($2) AND p.processed_at >= $3::timestamptz
ORDER BY p.topic, p.partition, p."offset"
