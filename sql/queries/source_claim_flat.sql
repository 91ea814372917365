-- Unsent rows by state, one look for all shards, by (shard, id): cheap while there is little. A row beyond the byte budget
-- comes without its body (fits = false) and ends the look.
-- Parameters: $1 bigint bit n set: shard n is wanted · $2 int rows at most · $3 bigint bytes at most ·
--   $4 bigint how large the first row may be · $5 bigint[] ids to leave out, or null · $6 text source.
-- Locks: none. Index: (shard, id) WHERE status = 'PENDING' AND available_at IS NULL, in its order; outbox_hold's key.
SELECT m.address_table, m.address, m.id, m.shard, m.generation, m.msg_id, m.created_at, m.topic, m.msg_key, m.bytes,
       m.fits,
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
       (SELECT set_config('outboxd.read_at', pg_current_wal_insert_lsn()::text, true)) IS NULL AS unused
  FROM (SELECT c.*, c.total <= $3::bigint OR (c.total = c.bytes AND c.bytes <= $4::bigint) AS fits
          FROM (SELECT m.tableoid AS address_table, m.ctid AS address, m.id, m.shard, m.generation, m.msg_id,
                       m.created_at, m.topic, m.msg_key, m.headers, m.body, coalesce(m.body_bytes, 0) AS bytes,
                       sum(coalesce(m.body_bytes, 0)) OVER (ORDER BY m.shard, m.id ROWS UNBOUNDED PRECEDING) AS total
                  FROM {{table}} AS m
                 WHERE m.status = 'PENDING' AND m.available_at IS NULL AND ($1::bigint >> m.shard::int) & 1 = 1
                   AND ($5::bigint[] IS NULL OR m.id NOT IN (SELECT unnest($5::bigint[])))
                 ORDER BY m.shard, m.id
                 LIMIT $2::int) c
         WHERE c.total - c.bytes <= $3::bigint) m
