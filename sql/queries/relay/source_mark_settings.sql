-- Before source_mark.sql and source_erase.sql, in the same transaction: on a partition that was empty at the last ANALYZE
-- the planner would walk its whole index for each mark, so what is left to it is the address of each row.
-- Parameters: none. Locks: none. Index: none.
SELECT set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true)
