-- Closes a claim: when the next scheduled row is due, which transactions have ended, how often rows were let go, and the
-- durability barrier. Rows of a synchronous_commit = off
-- transaction are visible before they are on disk; published and then lost in a crash of the server they would be phantoms.
-- So where rows were read and the log is not flushed up to where it stood then, or where a standby has to confirm, this
-- transaction writes to the log itself: its commit, awaited before the rows are handed out, flushes all before it.
-- (Neither an empty update nor a transaction id alone makes a commit flush.)
-- Parameters: $1 bool the barrier is on · $2 text source. Locks: none. Index: outbox_released's key; (available_at, id) WHERE status = 'PENDING' AND available_at IS NOT NULL.
SELECT (SELECT min(m.available_at) FROM {{table}} AS m
         WHERE m.status = 'PENDING' AND m.available_at IS NOT NULL AND m.available_at > now()) AS next_due,
       CASE WHEN $1::bool AND current_setting('outboxd.read_at', true) <> ''
                 AND (pg_current_wal_flush_lsn() < current_setting('outboxd.read_at', true)::pg_lsn
                      OR current_setting('synchronous_standby_names') <> '')
            THEN pg_logical_emit_message(true, 'outboxd', '') IS NOT NULL
            ELSE false END AS barrier,
       pg_snapshot_xmin(s.now_seen) AS oldest_running,
       -- Not the snapshot's xmax: that is behind the last number that has *ended*, and later ones may run. age() counts from
       -- the next number that is given (or this transaction's own, which it has since the claim began).
       pg_snapshot_xmin(s.now_seen)::text::bigint + age(pg_snapshot_xmin(s.now_seen)::xid) AS next_transaction,
       (SELECT coalesce(sum(r.times), 0)::bigint FROM {{schema}}.outbox_released r WHERE r.source = $2::text) AS releases
  FROM pg_current_snapshot() AS s (now_seen)
