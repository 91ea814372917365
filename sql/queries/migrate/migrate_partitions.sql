-- Makes one of the daily partitions that shall be there ahead: 1: made, ask again in another transaction; 0: all are there;
-- -1: the DEFAULT partition holds too many rows of those that are missing. Filled in: schema, days_ahead. Index: none.
-- Locks: see sql/migrations/shared/0002_partitions.sql.
SELECT {{schema}}.outbox_ensure_partitions({{days_ahead}})
