-- Waiting rows whose hold still exists become HELD: they leave the claim's index until the hold is released.
-- Parameters: $1 bigint[] ids · $2 text source · $3 uuid[] their msg_ids: an id may be another row's by now.
-- Locks: the rows. Index: the primary key of each partition; outbox_hold's key.
UPDATE {{table}} AS m
   SET status = 'HELD'
 WHERE m.id = ANY ($1::bigint[]) AND m.status = 'PENDING'
   AND ((m.id, m.msg_id) IN (SELECT * FROM unnest($1::bigint[], $3::uuid[]))) IS TRUE
   AND (EXISTS (SELECT FROM {{schema}}.outbox_hold h
                 WHERE h.source = $2 AND h.scope = 'topic' AND h.topic = m.topic)
        OR EXISTS (SELECT FROM {{schema}}.outbox_hold h
                    WHERE h.source = $2 AND h.scope = 'key' AND h.topic = m.topic AND h.msg_key = m.msg_key))
