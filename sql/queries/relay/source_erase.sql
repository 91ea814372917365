-- Deletes acknowledged rows, addressed where the claim saw them; checks as in source_mark.sql.
-- Parameters, rows: $1 tid[] · $2 bigint[] ids · $3 uuid[] msg_ids · $4 int[] generations ·
--   $5 smallint[] which of the leases, from 1; $6 text source; leases: $7 smallint[] lanes · $8 bigint[] epochs.
-- Locks: the rows. Index: none (TID scan of one partition, see source_mark_settings.sql).
DELETE FROM {{partition}} AS m
 USING unnest($1::tid[], $2::bigint[], $3::uuid[], $4::int[], $5::smallint[]) AS s (address, id, msg_id, generation, lease)
 WHERE m.ctid = s.address AND m.id = s.id AND m.msg_id = s.msg_id AND m.generation = s.generation
   AND m.status IN ('PENDING', 'HELD')
   AND s.lease = ANY (ARRAY(SELECT o.nth::smallint
                              FROM unnest($7::smallint[], $8::bigint[]) WITH ORDINALITY AS o (lane, epoch, nth)
                              JOIN {{schema}}.outbox_lease l ON l.source = $6 AND l.lane = o.lane AND l.epoch = o.epoch))
