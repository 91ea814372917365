-- The migrations a schema has had, oldest first. Filled in: schema. Parameters: none. Index: primary key. Locks: none.
SELECT version, name, checksum FROM {{schema}}.outbox_migration ORDER BY version
