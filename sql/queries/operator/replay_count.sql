-- How many rows `outboxd replay --dry-run` would send again. Filled in: table. Locks: none. Index: primary key; days outside
-- of the times are not read. Parameters: $1 int8[] ids, null: any · $2 text topic · $3 text key · $4, $5 timestamptz, from and
-- before; null: any.
SELECT count(*), coalesce(min(o.id), 0), coalesce(max(o.id), 0) FROM {{table}} o
WHERE o.status = 'SENT' AND ($1::bigint[] IS NULL OR o.id = ANY ($1)) AND ($2::text IS NULL OR o.topic = $2)
  AND ($3::text IS NULL OR o.msg_key = $3)
  AND o.created_at >= coalesce($4::timestamptz, '-infinity') AND o.created_at < coalesce($5::timestamptz, 'infinity')
