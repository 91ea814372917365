-- What stands before the COMMIT of what a batch and its handlers wrote, in one script with it.
-- A transaction that wrote nothing found only what others had committed, and waits for no flush and no standby; but an offset
-- moves on its word, so that what it found must be where a commit of its own would be: it writes to the log, and waits.
-- synchronous_commit is set again to what begin.sql left, whatever a handler made of it.
-- Parameters: none. Locks: none. Index: none.
SELECT pg_logical_emit_message(true, 'outbox', '') WHERE pg_current_xact_id_if_assigned() IS NULL;
SELECT set_config('synchronous_commit', current_setting('outbox.synchronous_commit'), true)
