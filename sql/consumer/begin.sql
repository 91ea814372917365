-- Opens the transaction that a batch of messages and its handlers share. Two statements, sent as one script.
-- READ COMMITTED: the look-up that follows the insert must see what others committed meanwhile.
-- An offset moves after this transaction's commit, so the commit must be durable: `off` is raised to `on`, and any stronger
-- setting stays.
-- Parameters: none. Locks: none. Index: none.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'
