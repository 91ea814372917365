-- The columns of the outbox table. Parameters: $1 text schema · $2 text table, both unquoted. Locks: none. Index: catalogs.
SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped
