-- Waiting rows whose hold still exists become HELD: they leave the claim's index until the hold is released.
-- Parameters: $1 bigint[] ids · $2 text source. Locks: the rows. Index: the primary key of each partition; outbox_hold's key.
UPDATE {{table}} AS m
   SET status = 'HELD'
 WHERE m.id = ANY ($1::bigint[]) AND m.status = 'PENDING'
   AND (EXISTS (SELECT FROM {{schema}}.outbox_hold h
                 WHERE h.source = $2 AND h.scope = 'topic' AND h.topic = m.topic)
        OR EXISTS (SELECT FROM {{schema}}.outbox_hold h
                    WHERE h.source = $2 AND h.scope = 'key' AND h.topic = m.topic AND h.msg_key = m.msg_key))
