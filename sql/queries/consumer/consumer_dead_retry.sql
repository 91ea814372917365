-- Has a dead message applied after all; see inbox_dead_retry() in sql/migrations. Filled in: schema.
-- Parameters: $1 id. Locks: as the function says. Index: primary key.
SELECT {{schema}}.inbox_dead_retry($1)
