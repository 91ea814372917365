-- How many ids `outboxd consumer purge --dry-run` would forget. Filled in: schema. Locks: none.
-- Index: the primary key of processed_msgs_timeless, all rows of the consumer.
-- Parameters: $1 text consumer · $2 timestamptz processed before.
SELECT count(*) FROM {{schema}}.processed_msgs_timeless p
WHERE p.consumer = $1 AND p.processed_at < $2::timestamptz AND p.state IN ('applied', 'discarded')
