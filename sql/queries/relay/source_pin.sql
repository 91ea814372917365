-- Remembers over how many partitions the keys of a topic are spread, where nothing is remembered yet.
-- Parameters: $1 text source · $2 text topic · $3 int partitions. Locks: the topic's row. Index: outbox_topic's key.
INSERT INTO {{schema}}.outbox_topic (source, topic, partitions)
VALUES ($1, $2, $3::int)
    ON CONFLICT DO NOTHING
