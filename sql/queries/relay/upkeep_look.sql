-- What the upkeep has to look at: days that ended before the replay window, to be dropped as a whole; and the DEFAULT
-- partition, or a table without partitions, whose rows are deleted one by one. Yesterday stays: it would be made again.
-- Parameters: $1 text the outbox table, quoted · $2 bigint replay window in milliseconds. Locks: none. Index: catalogs.
-- Columns: day, default or table; the oid; its quoted name; its size in blocks.
SELECT CASE WHEN b.ends IS NOT NULL THEN 'day' WHEN c.relispartition THEN 'default' ELSE 'table' END, c.oid,
       quote_ident(n.nspname) || '.' || quote_ident(c.relname),
       pg_relation_size(c.oid) / current_setting('block_size')::bigint
  FROM (SELECT p.relid FROM pg_partition_tree($1::text::regclass) p WHERE p.isleaf
        UNION SELECT $1::text::regclass) t  -- a table without partitions is in no tree
  JOIN pg_class c ON c.oid = t.relid AND c.relkind = 'r'
  JOIN pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL (SELECT CASE WHEN c.relispartition THEN {{schema}}.outbox_partition_end(c.oid) END AS ends) b
 WHERE b.ends IS NULL OR (b.ends <= clock_timestamp() - $2::bigint * interval '1 millisecond'
                          AND b.ends < date_trunc('day', clock_timestamp(), 'UTC'))
 ORDER BY b.ends
