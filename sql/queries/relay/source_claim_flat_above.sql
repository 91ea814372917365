-- As source_claim_flat.sql, but a probe per shard that begins behind an id: for when the beginning of the index is full of
-- dead entries. A row beyond the byte budget comes without its body (fits = false) and ends the look.
-- Parameters: $1 smallint[] shards, ascending · $2 bigint[] for each shard, only greater ids, which holds while nothing was let
--   go since: · $8 bigint the count of outbox_released that the relay knows · $3 int rows at most · $4 bigint bytes at most ·
--   $5 bigint how large the first row may be · $6 bigint[] ids to leave out, or null, and $9 uuid[] their msg_ids · $7 text source.
-- Locks: none. Index: (shard, id) WHERE status = 'PENDING' AND available_at IS NULL, each shard from its first wanted id;
-- outbox_hold's and outbox_released's key.
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
                          FROM unnest($1::smallint[], $2::bigint[]) AS s (shard, above)
                         CROSS JOIN LATERAL (
                               SELECT m.tableoid AS address_table, m.ctid AS address, m.id, m.shard, m.generation, m.msg_id,
                                      m.created_at, m.topic, m.msg_key, {{partition}} AS partition, m.headers, m.body,
                                      coalesce(m.body_bytes, 0) AS bytes
                                 FROM {{table}} AS m
                                WHERE m.status = 'PENDING' AND m.available_at IS NULL
                                  AND m.shard = s.shard
                                  AND m.id > CASE WHEN (SELECT coalesce(sum(r.times), 0) FROM {{schema}}.outbox_released r
                                                         WHERE r.source = $7) = $8::bigint
                                                  THEN s.above ELSE '-9223372036854775808'::bigint END
                                  AND ($6::bigint[] IS NULL
                                       OR (m.id, m.msg_id) NOT IN (SELECT * FROM unnest($6::bigint[], $9::uuid[])))
                                ORDER BY m.id
                                LIMIT $3::int) w
                         LIMIT $3::int) d) c
         WHERE c.total - c.bytes <= $4::bigint) m
