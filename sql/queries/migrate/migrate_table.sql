-- The outbox tables of a schema, and the type of each one's body. Filled in: none. Index: of the catalogs. Locks: none.
-- Parameters: $1 the schema's name.
SELECT c.relname::text, y.typname::text
FROM pg_catalog.pg_trigger t
JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = 'body'
JOIN pg_catalog.pg_type y ON y.oid = a.atttypid
WHERE n.nspname = $1 AND t.tgname = 'outbox_wake' AND c.relkind = 'p'
