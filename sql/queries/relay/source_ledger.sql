-- The generations of lanes with a ledger, the oldest first, and which of them is the present one.
-- Parameters: $1 text source. Locks: none. Index: the keys of outbox_lease and outbox_ledger.
SELECT o.generation, o.lanes, o.ledger, o.generation = l.generation
  FROM {{schema}}.outbox_ledger o JOIN {{schema}}.outbox_lease l ON l.source = o.source AND l.lane = 0
 WHERE o.source = $1
 ORDER BY o.generation
