-- A dead message that was taken failed again. Parameters: $1 id, $2 error.
-- Locks: as inbox_dead_failed() says in sql/migrations. Index: primary key.
SELECT {{schema}}.inbox_dead_failed($1, $2)
