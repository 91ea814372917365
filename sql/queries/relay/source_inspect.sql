-- What the source finds: one row for the server, its encoding, the schema, each relation it needs and each column of the outbox
-- table, and how the table numbers its rows.
-- Parameters: $1 text schema, $2 text table, both unquoted. Locks: none. Index: catalogs.
-- Columns: kind (server, encoding, schema, relation, guarded, column, numbering), name, is (primary or standby; the column's type;
--   transaction_first; empty: missing, or another numbering),
--   lacks (the privileges the role lacks, comma-separated; null: none). guarded: a relation, or a partition, of which row level
--   security may hide rows from this role. Types by their names in the catalog: what is displayed depends on settings.
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
SELECT 'encoding', current_setting('server_encoding'), NULL, NULL
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
SELECT 'guarded', c.relname::text, NULL, NULL
  FROM (SELECT f.oid FROM found f UNION SELECT p.relid FROM found f, pg_partition_tree(f.oid) p WHERE f.name = $2::text) t
  JOIN pg_class c ON c.oid = t.oid
 WHERE c.relkind IN ('r', 'p') AND row_security_active(c.oid)
UNION ALL
SELECT 'column', a.attname::text, CASE WHEN y.typnamespace = 'pg_catalog'::regnamespace THEN y.typname::text
                                       ELSE format_type(a.atttypid, a.atttypmod) END, NULL
  FROM found f
  JOIN pg_attribute a ON a.attrelid = f.oid AND a.attnum > 0 AND NOT a.attisdropped
  JOIN pg_type y ON y.oid = a.atttypid
 WHERE f.name = $2::text
UNION ALL
-- transaction_first: a row's transaction has its number before the row draws its id. Columns are computed in their order, ids
-- are drawn one by one, by the table alone, and no subscription brings rows with ids of elsewhere.
SELECT 'numbering', f.name,
       CASE WHEN i.attidentity = 'a' AND x.attnum < i.attnum AND s.seqcache = 1
                 AND replace(pg_get_expr(d.adbin, d.adrelid), '"', '') LIKE '%pg_current_xact_id()'
                 AND NOT EXISTS (SELECT FROM pg_subscription_rel r
                                  WHERE r.srrelid = f.oid
                                     OR r.srrelid IN (SELECT h.inhrelid FROM pg_inherits h WHERE h.inhparent = f.oid))
            THEN 'transaction_first' ELSE '' END, NULL
  FROM found f
  JOIN pg_attribute i ON i.attrelid = f.oid AND i.attname = 'id'
  LEFT JOIN pg_attribute x ON x.attrelid = f.oid AND x.attname = 'xact'
  LEFT JOIN pg_attrdef d ON d.adrelid = f.oid AND d.adnum = x.attnum
  LEFT JOIN pg_depend p ON p.refobjid = f.oid AND p.refobjsubid = i.attnum AND p.classid = 'pg_class'::regclass
                       AND p.refclassid = 'pg_class'::regclass AND p.deptype = 'i'
  LEFT JOIN pg_sequence s ON s.seqrelid = p.objid
 WHERE f.name = $2::text
