-- A message of the service's own, in the handler's transaction.
-- Parameters: $1 topic, $2 key or null, $3 body in the table's body type, $4 headers (JSON text).
-- Locks: ROW EXCLUSIVE on the outbox table. Index: none.
SELECT {{schema}}.outbox_publish($1, $2, $3, $4::jsonb)
