-- An operator's hold. It takes the place of a relay's own on the same topic, which that relay would release by itself.
-- Parameters: $1 text source · $2 text scope · $3 text topic · $4 text key · $5 text reason.
-- Locks: the hold. Index: outbox_hold's key.
INSERT INTO {{schema}}.outbox_hold AS h (source, scope, topic, msg_key, reason)
VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (source, scope, topic, msg_key, partition)
    DO UPDATE SET reason = excluded.reason, since = excluded.since WHERE starts_with(h.reason, 'kafka: ')
