-- Ends a hold, whoever put it there: it and the HELD status of every row behind it go in one transaction. Returns how many.
-- Parameters: $1 text source · $2 text scope · $3 text topic · $4 text key. Locks: the hold, then the rows.
-- Index: outbox_hold's key; (topic, msg_key, id) WHERE status IN ('HELD', 'DEAD').
SELECT {{schema}}.outbox_release($1, $2, $3, $4)
