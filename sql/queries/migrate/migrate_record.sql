-- Records a migration, in the transaction that applied it. Filled in: schema, set, number, name, checksum (literals, so that
-- the printed script is the script that runs). Index: primary key. Locks: none.
INSERT INTO {{schema}}.outbox_migration (set, number, name, checksum) VALUES ({{set}}, {{number}}, {{name}}, {{checksum}})
