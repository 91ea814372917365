-- Puts a relay's own reason for a hold in place: Kafka does not take the topic, or a key has a dead row. A repeat changes nothing;
-- one that is there is locked (DO NOTHING would not): a release that is ending it comes wholly before, and then it is put in place again.
-- Parameters: $1 text source · $2 text scope · $3 text topic · $4 text key · $5 text reason.
-- Locks: the reason. Index: outbox_hold's key.
INSERT INTO {{schema}}.outbox_hold (source, scope, topic, msg_key, cause, reason)
VALUES ($1, $2, $3, $4, CASE $2 WHEN 'topic' THEN 'kafka' ELSE 'dead' END, $5)
    ON CONFLICT (source, scope, topic, msg_key, cause, person) DO UPDATE SET reason = excluded.reason WHERE false
