-- A row is given up: it becomes DEAD with its reason, and what must wait behind it is held, in one statement. Where the row
-- no longer waits to be sent, or the lane has another owner, nothing happens; so a repeat changes nothing.
-- Parameters: $1 bigint id · $2 text reason · $3 text source · $4 smallint lane · $5 bigint epoch ·
--   $6 text scope of the hold, or null for none · $7 text topic · $8 text key ·
--   $9 int the row's generation: a repeat must not bury a row that was retried meanwhile ·
--   $10 uuid its msg_id: nor another row that has its id by now.
-- Locks: the key's reason `dead`, if it is there already, then the row: in the order of outbox_dead_end, and whoever ends that
-- reason meanwhile sees this row, or this one its end. Index: the primary key of each partition; outbox_lease's and outbox_hold's key.
WITH reason AS MATERIALIZED (
  SELECT FROM {{schema}}.outbox_hold h
   WHERE h.source = $3 AND h.scope = $6::text AND h.topic = $7 AND h.msg_key = $8 AND h.cause = 'dead'
     FOR UPDATE),
dead AS (
  UPDATE {{table}} AS m
     SET status = 'DEAD', last_error = $2, attempts = m.attempts + 1
   WHERE m.id = $1::bigint AND m.msg_id = $10::uuid AND m.generation = $9::int AND m.status IN ('PENDING', 'HELD')
     AND (SELECT count(*) FROM reason) >= 0
     AND EXISTS (SELECT FROM {{schema}}.outbox_lease l
                  WHERE l.source = $3 AND l.lane = $4::smallint AND l.epoch = $5::bigint)
  RETURNING 1)
INSERT INTO {{schema}}.outbox_hold AS h (source, scope, topic, msg_key, cause, reason)
SELECT $3, $6::text, $7, $8, 'dead', $2
  FROM dead
 WHERE $6::text IS NOT NULL
    ON CONFLICT (source, scope, topic, msg_key, cause, person) DO UPDATE SET reason = h.reason
