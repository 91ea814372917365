-- The type of an outbox table's body; no row: no such table or column. Filled in: none. Locks: none. Index: catalogs.
-- Parameters: $1 text, the table's quoted name.
SELECT (SELECT y.typname::text FROM pg_type y WHERE y.oid = a.atttypid) FROM pg_attribute a
WHERE a.attrelid = to_regclass($1::text) AND a.attname = 'body' AND NOT a.attisdropped
