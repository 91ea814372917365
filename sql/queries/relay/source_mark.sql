-- Sets acknowledged rows SENT, addressed where the claim saw them; the id, the msg_id (ids are given
-- out again), the generation and the status are checked again, and that the lane's epoch is still the one under which the row
-- was claimed. Rows that do not match are left alone.
-- Parameters, rows: $1 tid[] · $2 bigint[] ids · $3 uuid[] msg_ids · $4 int[] generations ·
--   $5 smallint[] which of the leases, from 1 · $6 int[] partitions · $7 bigint[] offsets; $8 text source;
--   leases: $9 smallint[] lanes · $10 bigint[] epochs.
-- Locks: the rows. Index: none (TID scan of one partition, see source_mark_settings.sql).
UPDATE {{partition}} AS m
   SET status = 'SENT', sent_at = now(), kafka_partition = s.kafka_partition, kafka_offset = s.kafka_offset
  FROM unnest($1::tid[], $2::bigint[], $3::uuid[], $4::int[], $5::smallint[], $6::int[], $7::bigint[])
       AS s (address, id, msg_id, generation, lease, kafka_partition, kafka_offset)
 WHERE m.ctid = s.address AND m.id = s.id AND m.msg_id = s.msg_id AND m.generation = s.generation
   AND m.status IN ('PENDING', 'HELD')
   AND s.lease = ANY (ARRAY(SELECT o.nth::smallint
                              FROM unnest($9::smallint[], $10::bigint[]) WITH ORDINALITY AS o (lane, epoch, nth)
                              JOIN {{schema}}.outbox_lease l ON l.source = $8 AND l.lane = o.lane AND l.epoch = o.epoch))
