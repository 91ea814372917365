-- Who owns which lane, by the database's clock. Filled in: schema. Locks: none. Index: primary key.
-- Parameters: $1 source, the outbox table's name as schema.table.
SELECT lane, coalesce(owner, ''), epoch,
       (extract(epoch FROM least(clock_timestamp() - renewed_at, '100 years')) * 1000)::bigint AS renewed_ago_ms,
       CASE WHEN isfinite(lease_until) THEN (extract(epoch FROM lease_until - clock_timestamp()) * 1000)::bigint
            ELSE -1 END AS remaining_ms,
       round(sent_per_s::numeric, 1)::text, generation
FROM {{schema}}.outbox_lease
WHERE source = $1
ORDER BY lane
