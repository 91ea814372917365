-- What `outboxd check` asks of the server and of its own session. Filled in: none. Parameters: none. Locks: none.
-- Index: catalogs. Other roles' transactions are seen only with pg_read_all_stats.
SELECT current_setting('server_version_num')::int AS version,
       pg_is_in_recovery() AS standby,
       current_setting('transaction_read_only')::bool AS read_only,
       current_setting('fsync')::bool AS fsync,
       current_setting('full_page_writes')::bool AS full_page_writes,
       current_setting('synchronous_commit') AS synchronous_commit,
       (SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout') AS statement_timeout_ms,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock_us,
       pg_backend_pid() AS pid,
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_others,
       current_setting('is_superuser')::bool AS superuser,
       (SELECT (extract(epoch FROM max(clock_timestamp() - xact_start)) * 1000)::bigint FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
          AND backend_type = 'client backend') AS oldest_transaction_ms,
       (SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()
          AND prepared < clock_timestamp() - interval '5 minutes') AS prepared_transactions,
       (SELECT string_agg(slot_name, ', ' ORDER BY slot_name) FROM pg_replication_slots
        WHERE NOT active AND restart_lsn IS NOT NULL) AS idle_slots,
       current_setting('wal_level') AS wal_level,
       current_setting('synchronous_standby_names') AS standbys_wanted,
       (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS standbys_in_sync,
       (pg_notification_queue_usage() * 1000000)::bigint AS notify_queue_ppm
