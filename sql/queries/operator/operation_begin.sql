-- Notes that an operator's command of many transactions begins; its number. Filled in: schema.
-- Parameters: $1 text action · $2 jsonb detail · $3 text reason · $4 text who. Locks: none. Index: none.
SELECT {{schema}}.outbox_operation_begin($1, $2::jsonb, $3, $4)
