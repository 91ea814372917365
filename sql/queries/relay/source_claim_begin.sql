-- The first statement of a claim, before anything is read: its looks and its end see one moment. Each by its own, a hold that
-- ends in between would show its scheduled rows free and its plain ones not yet, and a row that commits in between would be
-- claimed without the one that it follows. Not SET TRANSACTION, which warns outside of a transaction block; this holds for the
-- transaction as well.
-- Parameters: none. Locks: none. Index: none.
SET transaction_isolation = 'repeatable read'
