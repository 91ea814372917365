-- First in the transaction of a look-up by ids: each id is one probe. Filled in: none. Parameters: none. Locks: none.
-- Index: none. row_security: hidden rows are an error, and not missing ones.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true),
       set_config('row_security', 'off', true)
