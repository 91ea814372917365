-- The owner leaves: its lanes are free at once. The epoch stays; the next owner raises it.
-- Parameters: $1 text source · $2 text owner. Locks: the lanes' rows. Index: outbox_lease's key.
UPDATE {{schema}}.outbox_lease AS l
   SET owner = NULL, lease_until = now()
 WHERE l.source = $1 AND l.owner = $2
