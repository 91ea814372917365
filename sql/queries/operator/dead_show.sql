-- One dead message with what waits behind it.
-- Filled in: schema, table. Locks: none. Index: the primary key of each partition; (topic, msg_key, id) of held and dead rows;
-- outbox_hold's key. Parameters: $1 bigint id · $2 text source · $3 int bytes of the body at most, 0: none.
SELECT m.id, m.msg_id::text, m.topic, m.msg_key, to_char(m.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       m.attempts, m.generation, coalesce(m.body_bytes, 0), coalesce(m.last_error, ''),
       m.headers::text, CASE WHEN $3::int > 0 THEN left(m.body::text, $3::int) END,
       (SELECT count(*) FROM {{table}} AS b
         WHERE b.status IN ('HELD', 'DEAD') AND b.status = 'HELD' AND b.topic = m.topic AND b.msg_key = m.msg_key),
       (SELECT to_char(h.since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') FROM {{schema}}.outbox_hold h
         WHERE h.source = $2 AND h.scope = 'key' AND h.topic = m.topic AND h.msg_key = m.msg_key
           AND h.cause = 'dead')
  FROM {{table}} AS m
 WHERE m.id = $1::bigint AND m.status = 'DEAD'
