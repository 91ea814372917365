-- Who keeps dead rows from being cleaned away: the oldest of the open transactions and snapshots, prepared transactions,
-- replication slots and standbys that this database's tables must wait for. While one is old, marks leave more and more dead
-- entries behind.
-- Filled in: none. Parameters: none. Locks: none. Index: none.
-- Columns: what it is; its name; how many transactions ago it began; for how many milliseconds it is open, and what it does,
-- where that may be seen (pg_read_all_stats).
SELECT h.kind, h.name, h.age, h.open_ms, h.state
  FROM (SELECT 'session' AS kind,
               'pid ' || a.pid || ' user ' || coalesce(a.usename, '') ||
                 coalesce(' application ' || nullif(a.application_name, ''), '') AS name,
               greatest(age(a.backend_xmin), age(a.backend_xid)) AS age,
               (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::bigint AS open_ms,
               coalesce(a.state, '') AS state
          FROM pg_stat_activity a
         WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
           AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
        UNION ALL
        SELECT 'standby', 'pid ' || r.pid || ' application ' || coalesce(r.application_name, ''), age(r.backend_xmin), NULL, ''
          FROM pg_stat_replication r WHERE r.backend_xmin IS NOT NULL
        UNION ALL
        SELECT 'slot', s.slot_name::text, age(s.xmin), NULL, CASE WHEN s.active THEN 'active' ELSE 'inactive' END
          FROM pg_replication_slots s WHERE s.xmin IS NOT NULL
        UNION ALL
        SELECT 'prepared transaction', p.gid, age(p.transaction),
               (extract(epoch FROM clock_timestamp() - p.prepared) * 1000)::bigint, ''
          FROM pg_prepared_xacts p WHERE p.database = current_database()) h
 ORDER BY h.age DESC, h.open_ms DESC NULLS LAST
 LIMIT 1
