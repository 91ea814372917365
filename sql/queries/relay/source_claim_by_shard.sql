-- Unsent rows by state, a probe per shard: fair under backlog. Every shard may take its share of the byte budget; a row
-- beyond the share comes without its body (fits = false) and ends its shard, so no body is loaded only to be thrown away.
-- Parameters: $1 smallint[] shards, ascending · $2 int rows of a shard at most · $3 bigint bytes of a shard at most ·
--   $4 smallint the shard whose first row may be larger than the share, or -1 · $5 bigint how large it may be ·
--   $6 bigint[] ids to leave out, or null, and $10 uuid[] their msg_ids ·
--   $7 text source · $8 bigint[] for each shard, only greater ids, which holds
--   while nothing was let go since: · $9 bigint the count of outbox_released that the relay knows.
-- Filled in: schema, table, body, and partition: the column in which a row names its partition, or a null.
-- Locks: none. Index: (shard, id) WHERE status = 'PENDING' AND available_at IS NULL, each shard in id order; outbox_hold's and
-- outbox_released's key.
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
  FROM unnest($1::smallint[], $8::bigint[]) AS s (shard, above)
 CROSS JOIN LATERAL (
       SELECT c.*, c.total <= $3 OR (c.total = c.bytes AND c.shard = $4::smallint AND c.bytes <= $5::bigint) AS fits
         FROM (SELECT m.tableoid AS address_table, m.ctid AS address, m.id, m.shard, m.generation, m.msg_id,
                      m.created_at, m.topic, m.msg_key, {{partition}} AS partition, m.headers, m.body,
                      coalesce(m.body_bytes, 0) AS bytes,
                      sum(coalesce(m.body_bytes, 0)) OVER (ORDER BY m.id ROWS UNBOUNDED PRECEDING) AS total
                 FROM {{table}} AS m
                WHERE m.shard = s.shard
                  AND m.id > CASE WHEN (SELECT coalesce(sum(r.times), 0) FROM {{schema}}.outbox_released r
                                         WHERE r.source = $7) = $9::bigint
                                  THEN s.above ELSE '-9223372036854775808'::bigint END
                  AND m.status = 'PENDING' AND m.available_at IS NULL
                  AND ($6::bigint[] IS NULL
                       OR (m.id, m.msg_id) NOT IN (SELECT * FROM unnest($6::bigint[], $10::uuid[])))
                ORDER BY m.id
                LIMIT $2::int) c
        WHERE c.total - c.bytes <= $3::bigint) m
