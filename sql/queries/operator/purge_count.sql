-- How many rows `outboxd purge --dry-run` would delete. Filled in: table. Locks: none. Index: none; later days are not read.
-- Parameters: $1 text status · $2 timestamptz before · $3 text topic, null: any.
SELECT count(*) FROM {{table}} o
WHERE o.status = $1 AND o.created_at < $2::timestamptz AND ($3::text IS NULL OR o.topic = $3)
  AND ($1 <> 'SENT' OR coalesce(o.sent_at, o.created_at) < $2::timestamptz)
