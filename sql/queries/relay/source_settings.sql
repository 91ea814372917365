-- The first statement of every segment of the source: how the planner may read the outbox table, for this transaction.
-- Statistics of a queue that was empty at the last ANALYZE lie, so whatever reads a table whole is forbidden; the plan is
-- made once per connection and kept. Set here and not per session: a session's settings are lost or leaked by a pooler.
-- row_security: rows that a policy would hide must be an error, and never the answer that there is nothing to do.
-- Parameters: none. Locks: none. Index: none.
SELECT set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true),
       set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true),
       set_config('enable_sort', 'off', true),
       set_config('jit', 'off', true),
       set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('synchronous_commit', 'on', true),
       set_config('row_security', 'off', true)
