-- One of the daily partitions that shall be there ahead (the function's comment says how): 1: made, ask again; 0: all are there;
-- -1: the DEFAULT partition holds too much: each new day reads it whole and moves what is of that day, while inserts wait.
-- Parameters: $1 int days · $2 text the outbox table, quoted · $3 bigint bytes of the DEFAULT partition at most.
-- Locks: see the function. Index: none.
SELECT CASE WHEN (SELECT coalesce(pg_table_size(nullif(p.partdefid, 0)), 0) FROM pg_partitioned_table p
                   WHERE p.partrelid = $2::text::regclass) > $3::bigint THEN -1
            ELSE {{schema}}.outbox_ensure_partitions($1::int) END
