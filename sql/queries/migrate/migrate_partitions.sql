-- Makes the daily partitions ahead; returns how many. Filled in: schema, days_ahead. Index: none.
-- Locks: see sql/migrations/0004_partitions.sql.
SELECT {{schema}}.outbox_ensure_partitions({{days_ahead}})
