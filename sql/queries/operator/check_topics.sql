-- Topics that rows wait for, of at most 20,000 waiting rows, and those that are pinned: how large their largest waiting
-- body is, and over how many partitions their keys are spread. For `outboxd check`. Filled in: schema, table. Locks: none.
-- Parameters: $1 text, the source. Index: (shard, id) of pending rows, (available_at, id) of scheduled ones, (topic, …) of held.
WITH waiting AS (
  (SELECT topic, body_bytes FROM {{table}} WHERE status = 'PENDING' AND available_at IS NULL LIMIT 10000)
  UNION ALL
  (SELECT topic, body_bytes FROM {{table}} WHERE status = 'PENDING' AND available_at IS NOT NULL LIMIT 5000)
  UNION ALL
  (SELECT topic, body_bytes FROM {{table}} WHERE status IN ('HELD', 'DEAD') AND status = 'HELD' LIMIT 5000)),
largest AS (SELECT topic::text AS topic, count(*) AS rows, max(body_bytes)::bigint AS bytes FROM waiting GROUP BY topic),
pinned AS (SELECT topic, partitions FROM {{schema}}.outbox_topic WHERE source = $1)
SELECT coalesce(l.topic, p.topic) AS topic, coalesce(l.rows, 0), coalesce(l.bytes, 0), coalesce(p.partitions, 0)
FROM largest l FULL JOIN pinned p ON p.topic = l.topic
ORDER BY 1
LIMIT 500
