-- Deletes acknowledged rows, addressed where the claim saw them; checks as in source_mark.sql.
-- Parameters, rows: $1 tid[] · $2 bigint[] ids · $3 int[] generations · $4 smallint[] which of the leases, from 1;
--   $5 text source; leases: $6 smallint[] lanes · $7 bigint[] epochs.
-- Locks: the rows. Index: none (TID scan of one partition, see source_mark_settings.sql).
DELETE FROM {{partition}} AS m
 USING unnest($1::tid[], $2::bigint[], $3::int[], $4::smallint[]) AS s (address, id, generation, lease)
 WHERE m.ctid = s.address AND m.id = s.id AND m.generation = s.generation AND m.status IN ('PENDING', 'HELD')
   AND s.lease = ANY (ARRAY(SELECT o.nth::smallint
                              FROM unnest($6::smallint[], $7::bigint[]) WITH ORDINALITY AS o (lane, epoch, nth)
                              JOIN {{schema}}.outbox_lease l ON l.source = $5 AND l.lane = o.lane AND l.epoch = o.epoch))
