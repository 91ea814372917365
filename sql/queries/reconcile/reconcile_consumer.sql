-- The topics that one consumer has processed messages of, null: of none; and since when it is registered, null: it is not.
-- Filled in: schema. Locks: none. Index: the primary keys; all rows of the consumer are read.
-- Parameters: $1 text consumer.
SELECT p.topic, r.registered_at
FROM (SELECT (SELECT c.registered_at FROM {{schema}}.inbox_consumer c WHERE c.consumer = $1) AS registered_at) r
LEFT JOIN (SELECT DISTINCT d.topic FROM {{schema}}.processed_msgs d WHERE d.consumer = $1) p ON true
