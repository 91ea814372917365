-- The next dead message that somebody wants applied after all, locked; see inbox_dead_take() in sql/migrations.
-- Parameters: $1 consumer. Locks: the key's row, the message's. Index: as the function says.
SELECT d.id, d.topic, d.partition, d."offset", d.msg_key, d.body, d.attempts, d.msg_id
  FROM {{schema}}.inbox_dead_take($1) d
