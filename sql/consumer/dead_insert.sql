-- Keeps a message that will not be applied, or not now, for an operator. Delivered again (its offset did not move), it is not
-- kept twice.
-- Parameters: $1 consumer, $2 msg_id or null, $3 topic, $4 partition, $5 offset, $6 key, $7 body, $8 headers (JSON text),
-- $9 verdict, $10 error, $11 attempts, $12 payload hash, $13 whether it belongs to its key's queue.
-- Locks: ROW EXCLUSIVE on dead_msgs. Index: dead_msgs_once.
INSERT INTO {{schema}}.dead_msgs
       (consumer, msg_id, topic, partition, "offset", msg_key, body, headers, verdict, error, attempts, payload_sha256, parked)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10, $11, $12, $13)
    ON CONFLICT DO NOTHING
