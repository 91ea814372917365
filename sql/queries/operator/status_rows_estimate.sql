-- About how many rows the table has, without reading it. Filled in: none. Locks: none. Index: of the catalogs.
-- Parameters: $1 the table's quoted name. A plain table is its own and only leaf.
SELECT coalesce(sum(greatest(pg_stat_get_live_tuples(c.oid), c.reltuples::bigint, 0)), 0)::bigint
FROM pg_partition_tree($1::text::regclass) t
JOIN pg_class c ON c.oid = t.relid
WHERE t.isleaf
