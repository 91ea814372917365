-- The dedup rows of messages that processed_insert did not insert, and of those it did that are old; and whether each lies
-- below the consumer's low-water mark. A statement of its own, after the insert: within the insert's snapshot a row that
-- was committed concurrently is neither inserted nor visible, and a mark that was raised meanwhile is not seen.
-- Parameters: $1 consumer, $2 msg_ids. Locks: ACCESS SHARE on processed_msgs. Index: its primary key, one probe an id.
SELECT p.msg_id, p.payload_sha256, coalesce(p.id_time > '-infinity' AND p.id_time < c.low_water, false)
  FROM unnest($2::uuid[]) AS m (msg_id)
  JOIN {{schema}}.processed_msgs p
    ON p.consumer = $1 AND p.msg_id = m.msg_id AND p.id_time = {{schema}}.outbox_id_time(m.msg_id)
  LEFT JOIN {{schema}}.inbox_consumer c ON c.consumer = $1
