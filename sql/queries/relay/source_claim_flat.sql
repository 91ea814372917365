-- Unsent rows by state, one look for all wanted shards, by (shard, id): cheap while there is little. Neighbouring shards are
-- read as one range, so whoever has all of them reads the index once, and another instance's shards are not touched, whatever
-- waits there. A row beyond the byte budget comes without its body (fits = false) and ends the look.
-- Parameters: $1 smallint[] first shards of the ranges, ascending · $2 smallint[] their last shards · $3 int rows at most ·
--   $4 bigint bytes at most · $5 bigint how large the first row may be ·
--   $6 bigint[] ids to leave out, or null, and $8 uuid[] their msg_ids · $7 text source.
-- Locks: none. Index: (shard, id) WHERE status = 'PENDING' AND available_at IS NULL, in its order; outbox_hold's key.
SELECT m.address_table, m.address, m.id, m.shard, m.generation, m.msg_id, m.created_at, m.topic, m.msg_key, m.partition,
       m.bytes, m.fits,
       CASE WHEN (SELECT EXISTS (SELECT FROM {{schema}}.outbox_hold h WHERE h.source = $7))
            THEN EXISTS (SELECT FROM {{schema}}.outbox_hold h
                          WHERE h.source = $7 AND h.scope = 'topic' AND h.topic = m.topic)
              OR EXISTS (SELECT FROM {{schema}}.outbox_hold h
                          WHERE h.source = $7 AND h.scope = 'key' AND h.topic = m.topic AND h.msg_key = m.msg_key)
            ELSE false END AS held,
       CASE WHEN m.headers <> '{}' AND jsonb_typeof(m.headers) = 'object'
            THEN ARRAY(SELECT unnest(ARRAY[h.key, h.value]) FROM jsonb_each_text(m.headers) h) END AS headers,
       CASE WHEN m.fits THEN {{body}} END AS body,
       -- an uncorrelated sub-select: evaluated once, for the first row, after the statement's snapshot was
       -- taken: what these rows' transactions wrote lies before it. source_claim_end.sql reads it
       (SELECT set_config('outboxd.read_at', pg_current_wal_insert_lsn()::text, true)) IS NULL AS unused
  FROM (SELECT c.*, c.total <= $4::bigint OR (c.total = c.bytes AND c.bytes <= $5::bigint) AS fits
          FROM (SELECT d.*, sum(d.bytes) OVER (ROWS UNBOUNDED PRECEDING) AS total  -- in the order they come
                  FROM (SELECT w.*
                          FROM unnest($1::smallint[], $2::smallint[]) AS r (low, high)
                         CROSS JOIN LATERAL (
                               SELECT m.tableoid AS address_table, m.ctid AS address, m.id, m.shard, m.generation, m.msg_id,
                                      m.created_at, m.topic, m.msg_key, {{partition}} AS partition, m.headers, m.body,
                                      coalesce(m.body_bytes, 0) AS bytes
                                 FROM {{table}} AS m
                                WHERE m.status = 'PENDING' AND m.available_at IS NULL
                                  AND m.shard >= r.low AND m.shard <= r.high
                                  AND ($6::bigint[] IS NULL
                                       OR (m.id, m.msg_id) NOT IN (SELECT * FROM unnest($6::bigint[], $8::uuid[])))
                                ORDER BY m.shard, m.id
                                LIMIT $3::int) w
                         LIMIT $3::int) d) c
         WHERE c.total - c.bytes <= $4::bigint) m
