-- What stands where a view is wanted: its kind as pg_class has it, and its comment.
-- Parameters: $1 text schema · $2 text name, both unquoted. Locks: none. Index: catalogs.
SELECT c.relkind::text, coalesce(obj_description(c.oid, 'pg_class'), '')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2
