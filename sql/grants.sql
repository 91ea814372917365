-- Roles and what each may do with one outbox. Safe to repeat. Run by a role that may create roles and owns the tables
-- (or is a superuser); roles belong to the whole server, so several databases share them.
-- Filled in: schema, table, table_literal. Locks: none that outlive a moment.
--
--   outbox_app       an application: INSERT, publish, cancel. Grant it to the application's own role.
--   outbox_relay     the relay logs in as this one; set its password, or a line of pg_hba.conf.
--   outbox_consumer  a service that consumes: what it has processed, what it could not. Grant it to the service's role.
--   outbox_operator  a person: reads everything, ends holds and dead rows through functions only.
--   outbox_monitor   a dashboard: counts and times, never a key, a payload, its hash or a header.
DO $outbox$
DECLARE
  wanted record;
BEGIN
  FOR wanted IN SELECT * FROM (VALUES ('outbox_app', 'NOLOGIN'), ('outbox_relay', 'LOGIN'), ('outbox_consumer', 'NOLOGIN'),
                                      ('outbox_operator', 'NOLOGIN'), ('outbox_monitor', 'NOLOGIN')) r(name, login) LOOP
    IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = wanted.name) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I %s', wanted.name, wanted.login);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL;  -- made for another database at the same moment
      END;
    END IF;
  END LOOP;
END
$outbox$;

GRANT USAGE ON SCHEMA {{schema}} TO outbox_app, outbox_relay, outbox_consumer, outbox_operator, outbox_monitor;

-- What an application may set; what becomes of the row is the relay's to write, and the id the sequence's.
GRANT INSERT (msg_id, topic, msg_key, body, headers, status, available_at, created_at) ON {{table}} TO outbox_app;
GRANT EXECUTE ON FUNCTION {{schema}}.outbox_cancel(uuid) TO outbox_app;

GRANT SELECT, UPDATE, DELETE ON {{table}} TO outbox_relay;
GRANT SELECT, INSERT, UPDATE, DELETE ON {{schema}}.outbox_hold, {{schema}}.outbox_lease, {{schema}}.outbox_instance
  TO outbox_relay;
GRANT SELECT, INSERT, UPDATE ON {{schema}}.outbox_topic TO outbox_relay;
GRANT SELECT, INSERT, DELETE ON {{schema}}.outbox_ledger TO outbox_relay;
GRANT SELECT ON {{schema}}.outbox_ledger TO outbox_operator, outbox_monitor;
GRANT SELECT, UPDATE ON SEQUENCE {{schema}}.outbox_asleep TO outbox_relay;
GRANT SELECT ON {{schema}}.outbox_migration, {{schema}}.outbox_released TO outbox_relay, outbox_operator, outbox_monitor;
GRANT UPDATE ON {{schema}}.outbox_released TO outbox_relay; -- for its lock
GRANT SELECT (consumer, horizon) ON {{schema}}.inbox_consumer TO outbox_relay;

GRANT SELECT, INSERT, UPDATE ON {{schema}}.processed_msgs, {{schema}}.dead_msgs, {{schema}}.inbox_consumer,
                                {{schema}}.inbox_seq, {{schema}}.inbox_version, {{schema}}.inbox_offset
  TO outbox_consumer;
GRANT SELECT, INSERT, UPDATE, DELETE ON {{schema}}.inbox_parked_key TO outbox_consumer;
GRANT EXECUTE ON FUNCTION {{schema}}.inbox_maintain(int) TO outbox_consumer, outbox_operator;
GRANT EXECUTE ON FUNCTION {{schema}}.inbox_dead_retry(bigint), {{schema}}.inbox_dead_discard(bigint, text)
  TO outbox_operator;

GRANT SELECT ON {{table}}, {{schema}}.outbox_hold, {{schema}}.outbox_lease, {{schema}}.outbox_instance,
                {{schema}}.outbox_topic,
                {{schema}}.processed_msgs, {{schema}}.dead_msgs, {{schema}}.inbox_consumer, {{schema}}.inbox_seq,
                {{schema}}.inbox_version, {{schema}}.inbox_parked_key, {{schema}}.inbox_offset TO outbox_operator;
GRANT UPDATE (resolved_at, resolution) ON {{schema}}.dead_msgs TO outbox_operator;
GRANT EXECUTE ON FUNCTION {{schema}}.outbox_dead_retry(bigint), {{schema}}.outbox_dead_discard(bigint, text),
                          {{schema}}.outbox_cancel(uuid) TO outbox_operator;
GRANT EXECUTE ON FUNCTION {{schema}}.outbox_release(text, text, text, text, int) TO outbox_relay, outbox_operator;
GRANT EXECUTE ON FUNCTION {{schema}}.outbox_operation_begin(text, jsonb, text, text),
                          {{schema}}.outbox_pause(text, text, text, text, text),
                          {{schema}}.outbox_resume(text, text, text, text, text),
                          {{schema}}.outbox_replay(bigint, bigint, bigint[], text, text, timestamptz, timestamptz, int),
                          {{schema}}.outbox_purge(bigint, bigint, text, timestamptz, text, int)
  TO outbox_relay, outbox_operator;
GRANT EXECUTE ON FUNCTION {{schema}}.inbox_purge_timeless(bigint, text, uuid, timestamptz, int) TO outbox_operator;
GRANT SELECT ON {{schema}}.outbox_operation TO outbox_operator;
GRANT EXECUTE ON FUNCTION {{schema}}.outbox_ensure_partitions(int) TO outbox_relay, outbox_consumer, outbox_operator;
GRANT EXECUTE ON FUNCTION {{schema}}.outbox_drop_partition(regclass, interval) TO outbox_relay, outbox_operator;

GRANT SELECT (id, msg_id, topic, body_bytes, status, available_at, created_at, shard, generation, attempts, sent_at,
              kafka_partition, kafka_offset) ON {{table}} TO outbox_monitor;
GRANT SELECT (source, scope, topic, partition, since) ON {{schema}}.outbox_hold TO outbox_monitor;
GRANT SELECT ON {{schema}}.outbox_lease, {{schema}}.outbox_instance, {{schema}}.outbox_topic,
                {{schema}}.inbox_consumer, {{schema}}.inbox_offset
  TO outbox_monitor;
-- A payload of few possible values, such as an amount, can be found by its hash.
REVOKE SELECT ON {{schema}}.processed_msgs FROM outbox_monitor;
GRANT SELECT (consumer, msg_id, id_time, state, topic, partition, "offset", processed_at) ON {{schema}}.processed_msgs
  TO outbox_monitor;
GRANT SELECT (id, consumer, msg_id, topic, partition, "offset", verdict, attempts, created_at, resolved_at, resolution)
  ON {{schema}}.dead_msgs TO outbox_monitor;
GRANT SELECT (consumer, topic, since, retry_at) ON {{schema}}.inbox_parked_key TO outbox_monitor;

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
