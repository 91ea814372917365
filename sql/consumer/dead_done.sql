-- A dead message that was taken is done. Parameters: $1 id, $2 resolution.
-- Locks: as inbox_dead_done() says in sql/migrations. Index: primary key.
SELECT {{schema}}.inbox_dead_done($1, $2)
