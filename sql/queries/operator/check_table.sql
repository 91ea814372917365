-- What `outboxd check` asks of one outbox: is it as the migrations made it, and is it kept well?
-- Filled in: schema, table. Locks: none that outlive a moment. Index: catalogs; (topic, msg_key, id) of held and dead rows.
-- Parameters: $1 text, the table's quoted name · $2 text, the source: schema.table.
WITH leaf AS (
  SELECT c.oid, c.relname, c.reloptions FROM pg_partition_tree($1::text::regclass) t JOIN pg_class c ON c.oid = t.relid
  WHERE t.isleaf),
indexes AS (
  SELECT l.oid, i.indisvalid AND i.indisready AS fit,
         (SELECT string_agg(a.attname, ',' ORDER BY k.n) FROM unnest(i.indkey) WITH ORDINALITY k(attnum, n)
          JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum) AS columns
  FROM leaf l JOIN pg_index i ON i.indrelid = l.oid WHERE i.indpred IS NOT NULL),
wanted (columns) AS (VALUES ('shard,id'), ('available_at,id'), ('topic,msg_key,id'))
SELECT (SELECT s.seqcache FROM pg_sequence s WHERE s.seqrelid = pg_get_serial_sequence($1::text, 'id')::regclass) AS sequence_cache,
       (SELECT string_agg(l.relname || ' (' || w.columns || ')', ', ' ORDER BY l.relname, w.columns)
        FROM leaf l CROSS JOIN wanted w
        WHERE NOT EXISTS (SELECT 1 FROM indexes x WHERE x.oid = l.oid AND x.columns = w.columns AND x.fit)) AS indexes_missing,
       (SELECT count(*) FROM pg_trigger g WHERE g.tgrelid = $1::text::regclass AND g.tgname = 'outbox_wake'
          AND g.tgenabled <> 'D') AS wakes,
       (SELECT string_agg(l.relname, ', ' ORDER BY l.relname) FROM leaf l
        WHERE 'autovacuum_enabled=false' = ANY (l.reloptions) OR 'autovacuum_enabled=off' = ANY (l.reloptions)) AS unvacuumed,
       (SELECT max(e.lanes) FROM {{schema}}.outbox_lease e
        WHERE e.source = $2 AND e.owner IS NOT NULL AND e.lease_until > clock_timestamp()) AS lanes_leased,
       (SELECT count(*) FROM {{table}} WHERE status IN ('HELD', 'DEAD') AND status = 'DEAD') AS dead,
       (SELECT count(*) FROM (SELECT DISTINCT h.scope, h.topic, h.msg_key FROM {{schema}}.outbox_hold h
                              WHERE h.source = $2) d) AS holds
