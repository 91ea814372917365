-- Exactly-once delivery: which generations of lanes have written a ledger in Kafka, so that after the count of lanes changed
-- each lane of the old count is fenced and what it committed last is marked, before anything is claimed under the new one.
-- Filled in: schema. Locks: none beyond what it creates.

-- One row a generation of lanes that is, or may be, in use; an old one is deleted once it is settled. `ledger` is the same in
-- all rows of a source: the table's own name for itself in Kafka, so that two tables never take each other's ledger for theirs.
CREATE TABLE {{schema}}.outbox_ledger (
  source     text        COLLATE "C" NOT NULL,
  generation int         NOT NULL,
  lanes      smallint    NOT NULL,
  ledger     uuid        NOT NULL,
  since      timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT outbox_ledger_lanes_bounded CHECK (lanes BETWEEN 1 AND 64),
  PRIMARY KEY (source, generation)
);
