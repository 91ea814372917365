-- The remembered partition count, read after source_pin.sql in a statement of its own: it sees what a concurrent one wrote.
-- Parameters: $1 text source · $2 text topic. Locks: none. Index: outbox_topic's key.
SELECT t.partitions FROM {{schema}}.outbox_topic t WHERE t.source = $1 AND t.topic = $2
