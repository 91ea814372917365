-- Locks the holds over these rows, before source_set_held.sql in the same transaction: a release that deletes one of them
-- comes wholly before or wholly after, so no row becomes HELD behind a hold that is gone.
-- Parameters: $1 bigint[] ids · $2 text source · $3 uuid[] their msg_ids.
-- Locks: the holds, shared. Index: the primary key of each partition; outbox_hold's key.
WITH covered AS (
  SELECT DISTINCT m.topic, m.msg_key FROM {{table}} AS m WHERE m.id = ANY ($1::bigint[])
     AND ((m.id, m.msg_id) IN (SELECT * FROM unnest($1::bigint[], $3::uuid[]))) IS TRUE),
wanted (scope, topic, msg_key) AS (
  SELECT 'topic', c.topic, '' FROM covered c
  UNION
  SELECT 'key', c.topic, c.msg_key FROM covered c WHERE c.msg_key IS NOT NULL)
SELECT FROM wanted w
  JOIN {{schema}}.outbox_hold h
    ON h.source = $2 AND h.scope = w.scope AND h.topic = w.topic AND h.msg_key = w.msg_key
   FOR SHARE OF h
