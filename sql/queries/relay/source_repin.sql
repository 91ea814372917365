-- Replaces the remembered partition count. Parameters: $1 text source · $2 text topic · $3 int partitions.
-- Locks: the topic's row. Index: outbox_topic's key.
INSERT INTO {{schema}}.outbox_topic AS t (source, topic, partitions)
VALUES ($1, $2, $3::int)
    ON CONFLICT (source, topic) DO UPDATE SET partitions = excluded.partitions, pinned_at = now()
