-- Opens the transaction that a batch of messages and its handlers share. Three statements, sent as one script.
-- READ COMMITTED: the look-up that follows the insert must see what others committed meanwhile.
-- An offset moves after this transaction's commit, so the commit must be durable: `off` is raised to `on`, and any stronger
-- setting stays; commit.sql reads it here. A process that froze in it keeps its messages and partitions from those who took
-- over, for as long as the server lets it: a minute, unless role, database or connection say otherwise.
-- Parameters: none. Locks: none. Index: none.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SELECT set_config(name, better, true)
FROM (VALUES ('synchronous_commit', 'off', 'on'), ('idle_in_transaction_session_timeout', '0', '60s'))
     AS setting (name, bad, better)
WHERE current_setting(name) = bad;
SELECT set_config('outbox.synchronous_commit', current_setting('synchronous_commit'), true)
