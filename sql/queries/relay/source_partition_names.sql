-- The quoted names of partitions, for statements that address rows in them directly.
-- Parameters: $1 oid[]. Locks: none. Index: pg_class's oid.
SELECT c.oid, quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = ANY ($1::oid[])
