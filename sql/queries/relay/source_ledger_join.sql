-- Notes that the lanes of the present generation write a ledger, before any of them does. A repeat changes nothing.
-- Parameters: $1 text source. Locks: the new row. Index: the keys of outbox_lease and outbox_ledger.
INSERT INTO {{schema}}.outbox_ledger (source, generation, lanes, ledger)
SELECT $1, l.generation, l.lanes,
       coalesce((SELECT o.ledger FROM {{schema}}.outbox_ledger o WHERE o.source = $1 ORDER BY o.generation LIMIT 1),
                gen_random_uuid())
  FROM {{schema}}.outbox_lease l
 WHERE l.source = $1 AND l.lane = 0 AND l.generation > 0
ON CONFLICT DO NOTHING
