-- Makes the daily partitions ahead; returns how many. Filled in: schema, days_ahead. Index: none.
-- Locks: see sql/migrations/shared/0002_partitions.sql.
SELECT {{schema}}.outbox_ensure_partitions({{days_ahead}})
