-- Locks the holds over these rows, before source_set_held.sql in the same transaction: a release that deletes one of them
-- comes wholly before or wholly after, so no row becomes HELD behind a hold that is gone.
-- Parameters: $1 bigint[] ids · $2 text source. Locks: the holds, shared. Index: the primary key of each partition;
--   outbox_hold's key.
SELECT FROM {{schema}}.outbox_hold h
 WHERE h.source = $2 AND h.scope IN ('key', 'topic')
   AND EXISTS (SELECT FROM {{table}} AS m
                WHERE m.id = ANY ($1::bigint[]) AND m.topic = h.topic AND (h.scope = 'topic' OR m.msg_key = h.msg_key))
   FOR SHARE OF h
