-- Dead messages that an operator asks for, by (topic, key, id): each key's in their order.
-- Filled in: table. Locks: none. Index: (topic, msg_key, id) of held and dead rows.
-- Parameters, each null where it is not asked for: $1 bigint[] ids · $2 text topic · $3 text key · $4 text a part of the
--   reason, whatever its case · $5 timestamptz written at or after · $6 timestamptz written before; $7 int rows at most.
-- Columns: the row's; then how many there are in all.
SELECT m.id, m.msg_id::text, m.topic, m.msg_key, to_char(m.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       m.attempts, m.generation, coalesce(m.body_bytes, 0), coalesce(m.last_error, ''), count(*) OVER ()
  FROM {{table}} AS m
 WHERE m.status IN ('HELD', 'DEAD') AND m.status = 'DEAD'
   AND ($1::bigint[] IS NULL OR m.id = ANY ($1::bigint[]))
   AND ($2::text IS NULL OR m.topic = $2::text)
   AND ($3::text IS NULL OR m.msg_key = $3::text)
   AND ($4::text IS NULL OR position(lower($4::text) IN lower(m.last_error)) > 0)
   AND ($5::timestamptz IS NULL OR m.created_at >= $5::timestamptz)
   AND ($6::timestamptz IS NULL OR m.created_at < $6::timestamptz)
 ORDER BY m.topic, m.msg_key, m.id
 LIMIT $7::int
