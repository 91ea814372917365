-- Every topic that messages of this outbox went to. Filled in: schema. Locks: none. Index: outbox_topic's key.
-- Parameters: $1 text source · $2 text[] topics, null: all.
SELECT t.topic FROM {{schema}}.outbox_topic t
WHERE t.source = $1 AND ($2::text[] IS NULL OR t.topic = ANY ($2)) ORDER BY t.topic COLLATE "C"
