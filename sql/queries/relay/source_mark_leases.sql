-- Which of these leases still stand: nobody has taken the lane since.
-- Closes the look of source_mark_look.sql: what that found was committed by others, and rows are told to be settled on its word.
-- So this transaction writes to the log, and its commit waits for whatever theirs did: a flush, a synchronous standby.
-- Parameters: $1 text source · $2 smallint[] lanes · $3 bigint[] epochs. Locks: none. Index: outbox_lease's key.
SELECT o.nth::int
  FROM unnest($2::smallint[], $3::bigint[]) WITH ORDINALITY AS o (lane, epoch, nth)
  JOIN {{schema}}.outbox_lease l ON l.source = $1 AND l.lane = o.lane AND l.epoch = o.epoch
 WHERE (SELECT pg_logical_emit_message(true, 'outboxd', '')) IS NOT NULL
