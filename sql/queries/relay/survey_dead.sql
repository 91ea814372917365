-- The dead by topic and reason, the most frequent first, of at most 10,000 dead rows: what one look costs is bounded.
-- Filled in: table. Parameters: none. Locks: none. Index: (topic, msg_key, id) of held and dead rows.
SELECT topic, reason, count(*)
FROM (SELECT topic, left(coalesce(last_error, ''), 200) AS reason FROM {{table}}
      WHERE status IN ('HELD', 'DEAD') AND status = 'DEAD' LIMIT 10000) d
GROUP BY topic, reason
ORDER BY count(*) DESC, topic, reason
LIMIT 10
