-- Drops a day of the outbox unless something keeps it (the function's comment says how).
-- Parameters: $1 oid the partition · $2 bigint replay window in milliseconds. Locks: see the function. Index: see the function.
SELECT {{schema}}.outbox_drop_partition($1::oid::regclass, $2::bigint * interval '1 millisecond')
