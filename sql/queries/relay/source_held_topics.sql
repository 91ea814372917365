-- Topics that a relay put on hold, which it may release when Kafka has them again; an operator's holds are not among them.
-- Parameters: $1 text source. Locks: none. Index: outbox_hold's key.
SELECT h.topic FROM {{schema}}.outbox_hold h WHERE h.source = $1 AND h.scope = 'topic' AND starts_with(h.reason, 'kafka: ')
 ORDER BY h.topic
