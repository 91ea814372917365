-- Puts a hold in place; a repeat changes nothing.
-- Parameters: $1 text source · $2 text scope · $3 text topic · $4 text key · $5 text reason.
-- Locks: the hold. Index: outbox_hold's key.
INSERT INTO {{schema}}.outbox_hold (source, scope, topic, msg_key, reason)
VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING
