-- Claims messages for a consumer: inserts the dedup rows that are not there yet, and answers which those were, and which of
-- them are so old that their first row may have been forgotten (inbox_maintain drops nothing younger than two days), and
-- whether the consumer has any parked key. That last look is enough for a batch whose rows were all inserted: whoever parks
-- a key has the dedup row of its first message, which this batch or one before it would have met.
-- The unique index is the judge: a row that another transaction is inserting is waited for. In order of id, so that two
-- batches which share ids can't deadlock.
-- Parameters: $1 consumer, $2 state, $3 msg_ids, $4 payload hashes, $5 topics, $6 partitions, $7 offsets (arrays in step).
-- Locks: ROW EXCLUSIVE on processed_msgs; waits for a transaction that inserts the same id. Index: its primary key.
INSERT INTO {{schema}}.processed_msgs (consumer, msg_id, id_time, state, payload_sha256, topic, partition, "offset")
SELECT $1, m.msg_id, {{schema}}.outbox_id_time(m.msg_id), $2, m.payload_sha256, m.topic, m.partition, m."offset"
  FROM unnest($3::uuid[], $4::bytea[], $5::text[], $6::int[], $7::bigint[])
       AS m (msg_id, payload_sha256, topic, partition, "offset")
 ORDER BY m.msg_id
    ON CONFLICT DO NOTHING
RETURNING msg_id, id_time > '-infinity' AND id_time < now() - interval '1 day',
          EXISTS (SELECT FROM {{schema}}.inbox_parked_key k WHERE k.consumer = $1)
