-- Daily partitions well ahead (the function's comment says how). Parameters: $1 int days. Locks: see the function. Index: none.
SELECT {{schema}}.outbox_ensure_partitions($1::int)
