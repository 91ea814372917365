-- What one consumer has of messages that it should have: state and payload, null where there is no row; and whether the id
-- is so old that the row may have been dropped. Filled in: schema. Locks: none.
-- Index: processed_msgs' primary key, one probe an id. Parameters: $1 text consumer · $2 uuid[] msg_ids.
SELECT m.n, p.state, p.payload_sha256,
       coalesce({{schema}}.outbox_id_time(m.msg_id) > '-infinity' AND {{schema}}.outbox_id_time(m.msg_id) < c.low_water, false)
FROM unnest($2::uuid[]) WITH ORDINALITY AS m (msg_id, n)
LEFT JOIN {{schema}}.processed_msgs p
  ON p.consumer = $1 AND p.msg_id = m.msg_id AND p.id_time = {{schema}}.outbox_id_time(m.msg_id)
LEFT JOIN {{schema}}.inbox_consumer c ON c.consumer = $1
