-- Opens the view of `outboxd reconcile`: all of its rows are of one moment. It holds vacuum back until it ends.
-- Filled in: none. Parameters: none. Locks: none. Index: none.
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY
