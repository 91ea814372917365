-- How far each set of migrations was applied, for `outboxd check`. Filled in: schema. Parameters: none. Locks: none.
-- Index: primary key.
SELECT set, max(number) FROM {{schema}}.outbox_migration GROUP BY set ORDER BY set
