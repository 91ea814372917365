-- How many rows have each status: reads every day that the times touch. Filled in: table. Locks: none. Index: none.
-- Parameters: $1 text[] topics, null: all · $2, $3 timestamptz, created_at from and before.
SELECT o.status::text, count(*) FROM {{table}} o
WHERE ($1::text[] IS NULL OR o.topic = ANY ($1)) AND o.created_at >= $2::timestamptz AND o.created_at < $3::timestamptz
GROUP BY o.status ORDER BY o.status
