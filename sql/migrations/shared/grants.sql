-- Roles and what each may do with what every set builds on. All grants are safe to repeat. Run by a role that may create roles
-- and owns the tables (or is a superuser). Filled in: schema. Locks: none that outlive a moment.
--
--   outbox_operator  a person: reads everything, and changes rows through functions only.
--   outbox_monitor   a dashboard: counts and times, never a key, a payload, its hash or a header.
SELECT {{schema}}.outbox_make_role(name) FROM (VALUES ('outbox_operator'), ('outbox_monitor')) r(name);
GRANT USAGE ON SCHEMA {{schema}} TO outbox_operator, outbox_monitor;
GRANT SELECT ON {{schema}}.outbox_migration TO outbox_operator, outbox_monitor;
GRANT SELECT ON {{schema}}.outbox_operation TO outbox_operator;
GRANT EXECUTE ON FUNCTION {{schema}}.outbox_operation_begin(text, jsonb, text, text),
                          {{schema}}.outbox_ensure_partitions(int, int) TO outbox_operator;
