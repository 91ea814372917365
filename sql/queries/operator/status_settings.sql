-- First in the transaction of `outboxd status`: an empty queue's statistics lie, and a plan that scans millions of sent
-- rows is never the right one here; rows that a policy hides are an error, and not missing ones. Filled in: none.
-- Parameters: none. Index: none. Locks: none.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('jit', 'off', true) || set_config('row_security', 'off', true), version()
