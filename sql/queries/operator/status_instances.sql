-- Which instances are alive, the oldest first, with lanes or without. Filled in: schema. Locks: none. Index: primary key.
-- Parameters: $1 source, the outbox table's name as schema.table.
SELECT instance, lanes,
       (extract(epoch FROM clock_timestamp() - since) * 1000)::bigint AS age_ms,
       (extract(epoch FROM clock_timestamp() - renewed_at) * 1000)::bigint AS renewed_ago_ms,
       delivery, stopped
FROM {{schema}}.outbox_instance
WHERE source = $1 AND alive_until > clock_timestamp()
ORDER BY since, instance
