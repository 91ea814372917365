-- A dead message that was taken is to be taken again later. Parameters: $1 id, $2 milliseconds, $3 error.
-- Locks: as inbox_dead_later() says in sql/migrations. Index: primary key.
SELECT {{schema}}.inbox_dead_later($1, $2 * interval '1 millisecond', $3)
