-- Puts a key, a topic or the pipeline on hold (the function's comment says how); false: it was already, by this person.
-- Parameters: $1 text scope · $2 text topic · $3 text key · $4 text reason · $5 text who.
-- Locks: the hold. Index: outbox_hold's key.
SELECT {{schema}}.outbox_pause($1, $2, $3, $4, $5)
