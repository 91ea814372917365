-- The migrations a schema has had, oldest first. Filled in: schema. Parameters: none. Index: primary key. Locks: none.
SELECT set, number, name, checksum FROM {{schema}}.outbox_migration ORDER BY set, number
