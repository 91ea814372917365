-- Makes the daily partitions ahead of tables that nobody uses yet, all at once. Filled in: schema, days_ahead. Index: none.
-- Locks: see sql/migrations/shared/0002_partitions.sql.
SELECT sum({{schema}}.outbox_ensure_partitions({{days_ahead}})) AS partitions_made
FROM generate_series(1, ({{days_ahead}} + 2) * (SELECT count(*) FROM {{schema}}.outbox_daily_table))
