-- Roles of the outbox, and what each may do with it.
-- Filled in: schema, table, table_literal. Locks: none that outlive a moment.
--
--   outbox_app    an application: INSERT, publish, cancel. Grant it to the application's own role.
--   outbox_relay  the relay logs in as this one; set its password, or a line of pg_hba.conf.
SELECT {{schema}}.outbox_make_role('outbox_app');
SELECT {{schema}}.outbox_make_role('outbox_relay', may_login => true);
GRANT USAGE ON SCHEMA {{schema}} TO outbox_app, outbox_relay;
GRANT SELECT ON {{schema}}.outbox_migration TO outbox_relay;

-- What an application may set; what becomes of the row is the relay's to write, and the id the sequence's.
GRANT INSERT (msg_id, topic, msg_key, body, headers, status, available_at, created_at) ON {{table}} TO outbox_app;
GRANT EXECUTE ON FUNCTION {{schema}}.outbox_cancel(uuid) TO outbox_app;

GRANT SELECT, UPDATE, DELETE ON {{table}} TO outbox_relay;
GRANT SELECT, INSERT, UPDATE, DELETE ON {{schema}}.outbox_hold, {{schema}}.outbox_lease, {{schema}}.outbox_instance
  TO outbox_relay;
GRANT SELECT, INSERT, UPDATE ON {{schema}}.outbox_topic TO outbox_relay;
GRANT SELECT, INSERT, DELETE ON {{schema}}.outbox_ledger TO outbox_relay;
GRANT SELECT, UPDATE ON SEQUENCE {{schema}}.outbox_asleep TO outbox_relay;
GRANT SELECT, UPDATE ON {{schema}}.outbox_released TO outbox_relay;  -- UPDATE: for its lock

GRANT SELECT ON {{table}}, {{schema}}.outbox_hold, {{schema}}.outbox_lease, {{schema}}.outbox_instance,
                {{schema}}.outbox_topic, {{schema}}.outbox_ledger, {{schema}}.outbox_released TO outbox_operator;
GRANT EXECUTE ON FUNCTION {{schema}}.outbox_dead_retry(bigint), {{schema}}.outbox_dead_discard(bigint, text),
                          {{schema}}.outbox_cancel(uuid) TO outbox_operator;
GRANT EXECUTE ON FUNCTION {{schema}}.outbox_release(text, text, text, text, text, text),
                          {{schema}}.outbox_pause(text, text, text, text, text),
                          {{schema}}.outbox_resume(text, text, text, text, text, text),
                          {{schema}}.outbox_replay(bigint, bigint, bigint[], text, text, timestamptz, timestamptz, int),
                          {{schema}}.outbox_purge(bigint, bigint, text, timestamptz, text, int),
                          {{schema}}.outbox_drop_partition(regclass, interval)
  TO outbox_relay, outbox_operator;
GRANT EXECUTE ON FUNCTION {{schema}}.outbox_operation_begin(text, jsonb, text, text),
                          {{schema}}.outbox_ensure_partitions(int, int) TO outbox_relay;

GRANT SELECT (id, msg_id, topic, body_bytes, status, available_at, created_at, shard, generation, attempts, sent_at,
              kafka_partition, kafka_offset) ON {{table}} TO outbox_monitor;
GRANT SELECT (source, scope, topic, cause, since) ON {{schema}}.outbox_hold TO outbox_monitor;
GRANT SELECT ON {{schema}}.outbox_lease, {{schema}}.outbox_instance, {{schema}}.outbox_topic, {{schema}}.outbox_ledger,
                {{schema}}.outbox_released TO outbox_monitor;

-- Partitions that exist already; later ones get the same when they are made.
SELECT {{schema}}.outbox_share_grants(i.inhparent, i.inhrelid) FROM pg_catalog.pg_inherits i
WHERE i.inhparent = {{table_literal}}::regclass;

-- An empty queue's statistics lie, and a plan that scans is never the right one for the relay. These reach it behind a
-- pooler, too. jit would be started by the very costs that the first three pretend.
DO $outbox$
DECLARE
  setting text;
BEGIN
  FOREACH setting IN ARRAY ARRAY['enable_seqscan = off', 'enable_hashjoin = off', 'enable_mergejoin = off', 'jit = off',
                                 'idle_in_transaction_session_timeout = ''60s'''] LOOP
    EXECUTE format('ALTER ROLE outbox_relay IN DATABASE %I SET %s', current_database(), setting);
  END LOOP;
END
$outbox$;
