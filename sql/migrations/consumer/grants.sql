-- The consumer's role, and what each role may do with its tables. Filled in: schema. Locks: none that outlive a moment.
--
--   outbox_consumer  a service that consumes: what it has processed, what it could not. Grant it to the service's role.
SELECT {{schema}}.outbox_make_role('outbox_consumer');
GRANT USAGE ON SCHEMA {{schema}} TO outbox_consumer;

GRANT SELECT, INSERT, UPDATE ON {{schema}}.processed_msgs, {{schema}}.dead_msgs, {{schema}}.inbox_consumer,
                                {{schema}}.inbox_seq, {{schema}}.inbox_version, {{schema}}.inbox_offset
  TO outbox_consumer;
GRANT SELECT, INSERT, UPDATE, DELETE ON {{schema}}.inbox_parked_key TO outbox_consumer;
GRANT EXECUTE ON FUNCTION {{schema}}.outbox_ensure_partitions(int, int) TO outbox_consumer;
GRANT EXECUTE ON FUNCTION {{schema}}.inbox_maintain(int) TO outbox_consumer, outbox_operator;
GRANT EXECUTE ON FUNCTION {{schema}}.inbox_dead_retry(bigint), {{schema}}.inbox_dead_discard(bigint, text),
                          {{schema}}.inbox_purge_timeless(bigint, text, uuid, timestamptz, int)
  TO outbox_operator;

GRANT SELECT ON {{schema}}.processed_msgs, {{schema}}.dead_msgs, {{schema}}.inbox_consumer, {{schema}}.inbox_seq,
                {{schema}}.inbox_version, {{schema}}.inbox_parked_key, {{schema}}.inbox_offset TO outbox_operator;
GRANT UPDATE (resolved_at, resolution) ON {{schema}}.dead_msgs TO outbox_operator;

GRANT SELECT ON {{schema}}.inbox_consumer, {{schema}}.inbox_offset TO outbox_monitor;
-- Not payload_sha256: a payload of few possible values, such as an amount, can be found by its hash.
GRANT SELECT (consumer, msg_id, id_time, state, topic, partition, "offset", processed_at) ON {{schema}}.processed_msgs
  TO outbox_monitor;
GRANT SELECT (id, consumer, msg_id, topic, partition, "offset", verdict, attempts, created_at, resolved_at, resolution)
  ON {{schema}}.dead_msgs TO outbox_monitor;
GRANT SELECT (consumer, topic, since, retry_at) ON {{schema}}.inbox_parked_key TO outbox_monitor;

-- `outboxd check` compares how long the consumers of the relay's own database remember with what may come again.
DO $outbox$
BEGIN
  IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'outbox_relay') THEN
    GRANT SELECT (consumer, horizon) ON {{schema}}.inbox_consumer TO outbox_relay;
  END IF;
END
$outbox$;
