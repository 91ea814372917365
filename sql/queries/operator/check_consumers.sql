-- The consumer of this database that forgets first; no row: none forgets. For `outboxd check`. Filled in: schema.
-- Parameters: none. Locks: none. Index: none; one row a consumer.
SELECT c.consumer, (extract(epoch FROM c.horizon) * 1000)::bigint FROM {{schema}}.inbox_consumer c
WHERE c.horizon IS NOT NULL ORDER BY c.horizon, c.consumer LIMIT 1
