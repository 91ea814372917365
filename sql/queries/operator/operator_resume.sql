-- Ends a pause; with the last reason the hold and the HELD status of every row behind it go in one transaction (the function's
-- comment says what it returns). Parameters: $1 text scope · $2 text topic · $3 text key · $4 text reason · $5 text who ·
-- $6 text whose pause, null: one's own or the only one. Locks: the count of releases, the reasons, then the rows.
-- Index: outbox_hold's key; (topic, msg_key, id) WHERE status IN ('HELD', 'DEAD').
SELECT r.lifted, r.let_go, r.still FROM {{schema}}.outbox_resume($1, $2, $3, $4, $5, $6) r
