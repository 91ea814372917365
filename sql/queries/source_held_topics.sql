-- The topics on hold. Parameters: $1 text source. Locks: none. Index: outbox_hold's key.
SELECT h.topic FROM {{schema}}.outbox_hold h WHERE h.source = $1 AND h.scope = 'topic' ORDER BY h.topic
