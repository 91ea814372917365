-- What the source finds: one row for the server, the schema, each relation it needs and each column of the outbox table.
-- Parameters: $1 text schema · $2 text table, both unquoted. Locks: none. Index: catalogs.
-- Columns: kind (server, schema, relation, column), name, is (primary or standby; the column's type; empty: missing),
--   lacks (the privileges the role lacks, comma-separated; null: none).
WITH wanted (name, privileges) AS (
  VALUES ($2::text, ARRAY['SELECT', 'UPDATE']),
         ('outbox_hold', ARRAY['SELECT', 'INSERT', 'UPDATE']),
         ('outbox_lease', ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
         ('outbox_instance', ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
         ('outbox_topic', ARRAY['SELECT', 'INSERT', 'UPDATE']),
         ('outbox_released', ARRAY['SELECT', 'UPDATE']),
         ('outbox_asleep', ARRAY['UPDATE'])),
found AS (
  SELECT w.name, w.privileges, c.oid
    FROM wanted w
    LEFT JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = $1::text) ON c.relname = w.name
         AND c.relkind IN ('r', 'p', 'S'))
SELECT 'server' AS kind, version() AS name, CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END AS "is",
       NULL::text AS lacks
UNION ALL
SELECT 'schema', $1::text, CASE WHEN n.oid IS NULL THEN '' ELSE 'schema' END,
       CASE WHEN NOT has_schema_privilege(n.oid, 'USAGE') THEN 'USAGE' END
  FROM (VALUES (1)) one LEFT JOIN pg_namespace n ON n.nspname = $1::text
UNION ALL
(SELECT 'relation', f.name, CASE WHEN f.oid IS NULL THEN '' ELSE 'table' END,
       (SELECT string_agg(p, ', ') FROM unnest(f.privileges) p WHERE NOT has_table_privilege(f.oid, p))
  FROM found f
 ORDER BY f.name <> $2::text)
UNION ALL
SELECT 'column', a.attname::text, format_type(a.atttypid, a.atttypmod), NULL
  FROM found f
  JOIN pg_attribute a ON a.attrelid = f.oid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE f.name = $2::text
