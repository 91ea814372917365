-- Messages in dead_msgs, the oldest first. Filled in: schema.
-- Parameters: $1 consumer or null for all, $2 whether resolved ones too, $3 rows at most, $4 only ids above this one.
-- Locks: none. Index: primary key of dead_msgs.
SELECT d.id, d.consumer, coalesce(d.msg_id::text, ''), d.topic, d.partition, d."offset",
       coalesce(left(encode(d.msg_key, 'escape'), 60), ''), d.verdict, d.attempts,
       to_char(d.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
       CASE WHEN d.resolved_at IS NOT NULL THEN 'resolved: ' || d.resolution
            WHEN d.retry_at IS NOT NULL OR k.retry_at IS NOT NULL THEN 'retry wanted'
            WHEN d.parked THEN 'in its key''s queue'
            ELSE 'waits' END,
       left(d.error, 200)
  FROM {{schema}}.dead_msgs d
  LEFT JOIN {{schema}}.inbox_parked_key k
    ON d.parked AND k.consumer = d.consumer AND k.topic = d.topic AND k.key_sha256 = d.key_sha256
 WHERE ($1::text IS NULL OR d.consumer = $1) AND ($2::boolean OR d.resolved_at IS NULL) AND d.id > $4::bigint
 ORDER BY d.id LIMIT $3::int
