-- Scheduled rows whose available_at has come, by (available_at, id): their place in the order. A row beyond the byte budget
-- comes without its body (fits = false) and ends the look. A row that somebody has locked is left for later: outbox_cancel
-- holds its lock until its transaction ends, and answered "cancelled" long before the row came due. Such a row comes as well,
-- without its body (locked), in no order, so that nothing of its key passes it: the cancel may be rolled back.
-- Parameters: $1 bigint bit n set: shard n is wanted · $2 int rows at most · $3 bigint bytes at most ·
--   $4 bigint how large the first row may be ·
--   $5 bigint[] ids to leave out, or null, and $7 uuid[] their msg_ids · $6 text source.
-- Locks: the rows, FOR KEY SHARE, which a mark does not wait for. Index: (available_at, id) WHERE status = 'PENDING' AND available_at IS NOT NULL, in its order; outbox_hold's key.
WITH free AS MATERIALIZED (
  SELECT m.tableoid AS address_table, m.ctid AS address, m.id, m.shard, m.generation, m.msg_id,
         m.created_at, m.topic, m.msg_key, {{partition}} AS partition, m.headers, m.body,
         m.available_at, coalesce(m.body_bytes, 0) AS bytes
    FROM {{table}} AS m
   WHERE m.status = 'PENDING' AND m.available_at IS NOT NULL AND m.available_at <= now()
     AND ($1::bigint >> m.shard::int) & 1 = 1
     AND ($5::bigint[] IS NULL OR (m.id, m.msg_id) NOT IN (SELECT * FROM unnest($5::bigint[], $7::uuid[])))
   ORDER BY m.available_at, m.id
   LIMIT $2::int
     FOR KEY SHARE SKIP LOCKED),
last AS MATERIALIZED (SELECT f.available_at, f.id FROM free f OFFSET greatest($2::int, 1) - 1)
SELECT m.address_table, m.address, m.id, m.shard, m.generation, m.msg_id, m.created_at, m.topic, m.msg_key, m.partition,
       m.bytes, m.fits,
       CASE WHEN (SELECT EXISTS (SELECT FROM {{schema}}.outbox_hold h WHERE h.source = $6))
            THEN EXISTS (SELECT FROM {{schema}}.outbox_hold h
                          WHERE h.source = $6 AND h.scope = 'topic' AND h.topic = m.topic)
              OR EXISTS (SELECT FROM {{schema}}.outbox_hold h
                          WHERE h.source = $6 AND h.scope = 'key' AND h.topic = m.topic AND h.msg_key = m.msg_key)
            ELSE false END AS held,
       CASE WHEN m.headers <> '{}' AND jsonb_typeof(m.headers) = 'object'
            THEN ARRAY(SELECT unnest(ARRAY[h.key, h.value]) FROM jsonb_each_text(m.headers) h) END AS headers,
       CASE WHEN m.fits THEN {{body}} END AS body,
       -- an uncorrelated sub-select: evaluated once, for the first row, after the statement's snapshot was
       -- taken: what these rows' transactions wrote lies before it. source_claim_end.sql reads it
       (SELECT set_config('outboxd.read_at', pg_current_wal_insert_lsn()::text, true)) IS NULL AS unused,
       m.available_at, false AS locked
  FROM (SELECT c.*, c.total <= $3::bigint OR (c.total = c.bytes AND c.bytes <= $4::bigint) AS fits
          FROM (SELECT d.*, sum(d.bytes) OVER (ROWS UNBOUNDED PRECEDING) AS total  -- in the order they come
                  FROM free d) c
         WHERE c.total - c.bytes <= $3::bigint) m
 UNION ALL
-- Up to the last of these, or all where there are no more: what is due and not among them is locked. One more than the limit
-- says that there may be others.
SELECT m.* FROM (
  SELECT m.tableoid, m.ctid, m.id, m.shard, m.generation, m.msg_id, m.created_at, m.topic, m.msg_key, NULL::int,
         0, true, false, NULL::text[], CASE WHEN false THEN {{body}} END, false, m.available_at, true
    FROM {{table}} AS m
   WHERE m.status = 'PENDING' AND m.available_at IS NOT NULL
     AND (m.available_at, m.id) <= (coalesce((SELECT l.available_at FROM last l), now()),
                                    coalesce((SELECT l.id FROM last l), 9223372036854775807))
     AND ($1::bigint >> m.shard::int) & 1 = 1
     AND ($5::bigint[] IS NULL OR (m.id, m.msg_id) NOT IN (SELECT * FROM unnest($5::bigint[], $7::uuid[])))
     AND (m.id, m.msg_id) NOT IN (SELECT f.id, f.msg_id FROM free f)
   ORDER BY m.available_at, m.id
   LIMIT $2::int + 1) m
