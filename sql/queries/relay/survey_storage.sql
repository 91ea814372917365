-- How far ahead the daily partitions reach, how large the default one is, and how far back vacuum is held, in
-- transactions, by what this role may see (another role's backends: with pg_read_all_stats only); how full the server's queue of
-- notifications is, in millionths.
-- Filled in: none. Parameters: $1 text, the table's quoted name. Locks: none that outlive a moment. Index: catalogs.
WITH part AS (
  SELECT c.oid, pg_get_expr(c.relpartbound, c.oid) AS bound
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = $1::text::regclass)
SELECT (SELECT (extract(epoch FROM max(substring(bound FROM 'TO \(''([^'']+)''\)')::timestamptz) - now()) * 1000)::bigint
        FROM part) AS ahead_ms,
       coalesce((SELECT pg_relation_size(oid) FROM part WHERE bound = 'DEFAULT'), 0)::bigint AS default_bytes,
       greatest(0,
         (SELECT max(age(backend_xmin)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()),
         (SELECT max(greatest(age(xmin), age(catalog_xmin))) FROM pg_replication_slots),
         (SELECT max(age(transaction)) FROM pg_prepared_xacts WHERE database = current_database()))::bigint AS xmin_age,
       (pg_notification_queue_usage() * 1000000)::bigint AS notify_queue_ppm
