-- Ends a relay's own reason for a hold; with the last reason the hold and the HELD status of every row behind it go in one
-- transaction (the function's comment says how). Null: an operator holds it still.
-- Parameters: $1 text source · $2 text scope · $3 text topic · $4 text key.
-- Locks: the count of releases first, as everybody who ends a hold (so no two wait for each other), the reason, the rows.
-- Index: outbox_released's and outbox_hold's key; (topic, msg_key, id) WHERE status IN ('HELD', 'DEAD').
SELECT {{schema}}.outbox_release($1, $2, $3, $4, CASE $2 WHEN 'topic' THEN 'kafka' ELSE 'dead' END)
