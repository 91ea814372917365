-- Deletes the settled rows of a range of blocks that are older than the replay window, and tells how many went and how many
-- stay. A range at a time, so that it neither needs an index of its own nor holds anything for long.
-- Parameters: $1 bigint first block · $2 bigint first block after the range · $3 bigint replay window in milliseconds.
-- Locks: the rows. Index: none (TID range scan).
WITH gone AS (
  DELETE FROM {{partition}} AS m
   WHERE m.ctid >= format('(%s,0)', $1::bigint)::tid AND m.ctid < format('(%s,0)', $2::bigint)::tid
     AND m.status IN ('SENT', 'CANCELLED', 'DISCARDED')
     AND greatest(m.created_at, m.sent_at) < clock_timestamp() - $3::bigint * interval '1 millisecond'
  RETURNING 1)
SELECT (SELECT count(*) FROM gone),
       (SELECT count(*) FROM {{partition}} AS m
         WHERE m.ctid >= format('(%s,0)', $1::bigint)::tid AND m.ctid < format('(%s,0)', $2::bigint)::tid)
       - (SELECT count(*) FROM gone)
