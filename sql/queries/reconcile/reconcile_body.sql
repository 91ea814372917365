-- The type of an outbox table's body; no row: no such table or column. Filled in: none. Locks: none. Index: catalogs.
-- Parameters: $1 text, the table's quoted name.
SELECT format_type(a.atttypid, NULL) FROM pg_attribute a
WHERE a.attrelid = to_regclass($1::text) AND a.attname = 'body' AND NOT a.attisdropped
