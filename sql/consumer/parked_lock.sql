-- Which of a batch's keys are parked, locked, so that none of them is let go before this transaction ends. In order, so that
-- two batches which share keys can't deadlock. A key that a retry is letting go is waited for, and then is not among them.
-- Parameters: $1 consumer, $2 topics, $3 hashes of keys (arrays in step, each key once).
-- Locks: the keys' rows. Index: primary key of inbox_parked_key, one probe a key.
SELECT k.topic, k.key_sha256
  FROM unnest($2::text[], $3::bytea[]) AS m (topic, key_sha256)
  JOIN {{schema}}.inbox_parked_key k
    ON k.consumer = $1 AND k.topic = m.topic AND k.key_sha256 = m.key_sha256
 ORDER BY k.topic, k.key_sha256
   FOR UPDATE OF k
