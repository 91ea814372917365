-- Topics that a relay put on hold, whose reason it ends when Kafka has them again; an operator's are not among them.
-- Parameters: $1 text source. Locks: none. Index: outbox_hold's key.
SELECT h.topic FROM {{schema}}.outbox_hold h WHERE h.source = $1 AND h.scope = 'topic' AND h.cause = 'kafka'
 ORDER BY h.topic
