-- Forgets old generations of lanes whose ledgers are settled, where the caller's lease still stands and the present
-- generation is not among them.
-- Parameters: $1 text source · $2 int[] generations · $3 smallint lane · $4 bigint epoch.
-- Locks: the rows. Index: the keys of outbox_lease and outbox_ledger.
DELETE FROM {{schema}}.outbox_ledger o
 USING {{schema}}.outbox_lease l
 WHERE o.source = $1 AND o.generation = ANY ($2::int[]) AND l.source = $1 AND l.lane = $3 AND l.epoch = $4
   AND o.generation < l.generation
