-- Sets acknowledged rows SENT, addressed where the claim saw them; the id, the generation and the status are checked again,
-- and that the lane's epoch is still the one under which the row was claimed. Rows that do not match are left alone.
-- Parameters, rows: $1 tid[] · $2 bigint[] ids · $3 int[] generations · $4 smallint[] which of the leases, from 1 ·
--   $5 int[] partitions · $6 bigint[] offsets; $7 text source; leases: $8 smallint[] lanes · $9 bigint[] epochs.
-- Locks: the rows. Index: none (TID scan of one partition, see source_mark_settings.sql).
UPDATE {{partition}} AS m
   SET status = 'SENT', sent_at = now(), kafka_partition = s.kafka_partition, kafka_offset = s.kafka_offset
  FROM unnest($1::tid[], $2::bigint[], $3::int[], $4::smallint[], $5::int[], $6::bigint[])
       AS s (address, id, generation, lease, kafka_partition, kafka_offset)
 WHERE m.ctid = s.address AND m.id = s.id AND m.generation = s.generation AND m.status IN ('PENDING', 'HELD')
   AND s.lease = ANY (ARRAY(SELECT o.nth::smallint
                              FROM unnest($8::smallint[], $9::bigint[]) WITH ORDINALITY AS o (lane, epoch, nth)
                              JOIN {{schema}}.outbox_lease l ON l.source = $7 AND l.lane = o.lane AND l.epoch = o.epoch))
