-- Raises the highest outbox-seq of chains, and answers what each was before (null: nothing). In order, so that two batches
-- which share chains can't deadlock.
-- Parameters: $1 consumer, $2 topics, $3 chains, $4 seqs (arrays in step, each chain once).
-- Locks: the chains' rows, until the transaction ends. Index: primary key of inbox_seq.
INSERT INTO {{schema}}.inbox_seq AS s (consumer, topic, chain, seq)
SELECT $1, m.topic, m.chain, m.seq
  FROM unnest($2::text[], $3::bytea[], $4::bigint[]) AS m (topic, chain, seq)
 ORDER BY m.topic, m.chain
    ON CONFLICT (consumer, topic, chain) DO UPDATE SET previous = s.seq, seq = greatest(s.seq, excluded.seq)
RETURNING topic, chain, previous
