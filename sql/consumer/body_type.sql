-- The type of the outbox table's body, as outbox_publish takes it.
-- Parameters: $1 the schema's name. Locks: none. Index: pg_proc by name.
SELECT (SELECT y.typname::text FROM pg_type y WHERE y.oid = p.proargtypes[2])
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
 WHERE p.proname = 'outbox_publish' AND n.nspname = $1
