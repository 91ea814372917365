-- Ends a hold, whoever put it there: it and the HELD status of every row behind it go in one transaction. Returns how many.
-- Parameters: $1 text scope · $2 text topic · $3 text key · $4 text reason · $5 text who. Locks: the hold, then the rows.
-- Index: outbox_hold's key; (topic, msg_key, id) WHERE status IN ('HELD', 'DEAD').
SELECT {{schema}}.outbox_resume($1, $2, $3, $4, $5)
