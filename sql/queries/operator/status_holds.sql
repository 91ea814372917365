-- What is on hold, the oldest first, and how many holds there are. Filled in: schema. Locks: none. Index: primary key.
-- Parameters: $1 source · $2 int4, how many to return.
SELECT scope, topic, msg_key, left(reason, 500), (extract(epoch FROM clock_timestamp() - since) * 1000)::bigint,
       count(*) OVER ()
FROM {{schema}}.outbox_hold
WHERE source = $1
ORDER BY since
LIMIT $2
