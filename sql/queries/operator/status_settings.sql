-- First in the transaction of `outboxd status`: an empty queue's statistics lie, and a plan that scans millions of sent
-- rows is never the right one here. Filled in: none. Parameters: none. Index: none. Locks: none.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('jit', 'off', true), version()
