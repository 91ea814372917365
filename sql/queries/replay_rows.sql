-- Sends rows again that were sent: a batch of them becomes PENDING with its generation raised, so that a record of the
-- earlier sending can't vouch for this one; who and why stays in last_error. Filled in: table. Answers the ids.
-- Parameters: $1 int8, only ids above · $2 int8[] ids, null: any · $3 text topic, null: any · $4 text key, null: any
--   · $5, $6 timestamptz, created_at from and before, null: open · $7 int4 rows at most · $8 text note · $9 text source.
-- Locks: the rows (those that somebody else has are left out). Index: primary key; days outside of the times are not read.
WITH counted AS (  -- what a relay passed is PENDING again: it must not begin behind it
  INSERT INTO {{schema}}.outbox_released AS r (source, times) VALUES ($9, 1)
  ON CONFLICT ON CONSTRAINT outbox_released_once DO UPDATE SET times = r.times + 1),
picked AS (
  SELECT o.id, o.created_at FROM {{table}} o
  WHERE o.status = 'SENT' AND o.id > $1
    AND ($2::bigint[] IS NULL OR o.id = ANY ($2)) AND ($3::text IS NULL OR o.topic = $3)
    AND ($4::text IS NULL OR o.msg_key = $4)
    AND o.created_at >= coalesce($5::timestamptz, '-infinity') AND o.created_at < coalesce($6::timestamptz, 'infinity')
  ORDER BY o.id LIMIT $7 FOR UPDATE SKIP LOCKED)
UPDATE {{table}} o
SET status = 'PENDING', generation = o.generation + 1, sent_at = NULL, kafka_partition = NULL, kafka_offset = NULL,
    last_error = left(concat_ws(' | ', $8, o.last_error), 2000)
FROM picked p WHERE o.id = p.id AND o.created_at = p.created_at AND o.status = 'SENT'
RETURNING o.id
