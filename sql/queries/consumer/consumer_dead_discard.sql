-- Gives a dead message up; see inbox_dead_discard() in sql/migrations. Filled in: schema.
-- Parameters: $1 id, $2 reason. Locks: as the function says. Index: primary key.
SELECT {{schema}}.inbox_dead_discard($1, $2)
