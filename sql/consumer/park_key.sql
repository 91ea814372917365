-- Parks a key: from this transaction's commit on, what comes for it goes to its queue. One that is parked already is locked, so
-- that a retry which finds its queue empty can't let it go before this transaction's message is in it.
-- Parameters: $1 consumer, $2 topic, $3 key. Locks: the key's row. Index: primary key of inbox_parked_key.
INSERT INTO {{schema}}.inbox_parked_key (consumer, topic, key_sha256, msg_key) VALUES ($1, $2, sha256($3), $3)
    ON CONFLICT (consumer, topic, key_sha256) DO UPDATE SET msg_key = excluded.msg_key
