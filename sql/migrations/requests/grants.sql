-- The role of services that take idempotent requests, and what it may do: the functions, and no table. Safe to repeat. Run
-- by a role that may create roles and owns the tables (or is a superuser). Filled in: schema. Locks: none that outlive a moment.
--
--   outbox_requests  a service: begin, finish, recover, maintain. Grant it to the service's own role.
SELECT {{schema}}.outbox_make_role('outbox_requests');

GRANT USAGE ON SCHEMA {{schema}} TO outbox_requests;
GRANT EXECUTE ON FUNCTION
  {{schema}}.request_declare_class(text, interval, interval, interval), {{schema}}.request_declare(text, text, interval, text),
  {{schema}}.request_begin(text, text, bytea, uuid, int, bytea[], text),
  {{schema}}.request_finish(text, text, int, uuid, text, int, jsonb, bytea, text, bigint),
  {{schema}}.request_status(text, text), {{schema}}.request_recover(uuid, int, text), {{schema}}.request_maintain()
  TO outbox_requests;
GRANT EXECUTE ON FUNCTION {{schema}}.request_status(text, text), {{schema}}.request_maintain(),
  {{schema}}.request_purge(timestamptz, text, text), {{schema}}.request_expedite(text, text) TO outbox_operator;
GRANT SELECT ON {{schema}}.idempotency_keys, {{schema}}.idempotency_period, {{schema}}.idempotency_operation,
  {{schema}}.idempotency_class, {{schema}}.request_overview TO outbox_operator;
GRANT SELECT ON {{schema}}.idempotency_period, {{schema}}.idempotency_operation, {{schema}}.idempotency_class,
  {{schema}}.request_overview TO outbox_monitor;
