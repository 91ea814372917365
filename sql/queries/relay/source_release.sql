-- Ends a hold: it and the HELD status of every row behind it go in one transaction (the function's comment says how).
-- A topic's hold that an operator put in place stays: its reason does not start with "kafka: ".
-- Parameters: $1 text source · $2 text scope · $3 text topic · $4 text key.
-- Locks: the count of releases first, as everybody who ends a hold (so no two wait for each other), the hold, the rows.
-- Index: outbox_released's and outbox_hold's key; (topic, msg_key, id) WHERE status IN ('HELD', 'DEAD').
WITH counted AS MATERIALIZED (SELECT r.times FROM {{schema}}.outbox_released r WHERE r.source = $1 FOR UPDATE),
hold AS (
  SELECT h.reason FROM {{schema}}.outbox_hold h
   WHERE (SELECT count(*) FROM counted) >= 0
     AND h.source = $1 AND h.scope = $2 AND h.topic = $3 AND h.scope = 'topic' FOR UPDATE)
SELECT {{schema}}.outbox_release($1, $2, $3, $4)
 WHERE NOT EXISTS (SELECT FROM hold WHERE NOT starts_with(hold.reason, 'kafka: '))
