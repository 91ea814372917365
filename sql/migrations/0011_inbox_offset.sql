-- Offsets of consumers that keep them beside their effects, by partition. Filled in: schema.
-- Locks: only on what it creates.

-- next: the first offset that is not settled; null: none is yet. epoch: raised by each claim, so that a transaction of an
-- earlier owner finds another one than its own, and is rolled back.
CREATE TABLE {{schema}}.inbox_offset (
  consumer   text        COLLATE "C" NOT NULL,
  topic      text        COLLATE "C" NOT NULL,
  partition  int         NOT NULL,
  next       bigint,
  epoch      bigint      NOT NULL DEFAULT 1,
  changed_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT inbox_offset_not_negative CHECK (next >= 0),
  PRIMARY KEY (consumer, topic, partition)
) WITH (fillfactor = 50);
COMMENT ON TABLE {{schema}}.inbox_offset IS
  'outbox: where consumers with offsets in the database go on, and the epoch under which their owner may move that';

-- Makes the caller the partition's owner: under a higher epoch than any before, from where the last one came to.
-- Locks: the partition's row. Index: primary key.
CREATE FUNCTION {{schema}}.inbox_offset_claim(
  consumer text, topic text, partition int, OUT epoch bigint, OUT next bigint)
LANGUAGE sql VOLATILE
BEGIN ATOMIC
  INSERT INTO {{schema}}.inbox_offset AS o (consumer, topic, partition)
  VALUES (inbox_offset_claim.consumer, inbox_offset_claim.topic, inbox_offset_claim.partition)
  ON CONFLICT (consumer, topic, partition) DO UPDATE SET epoch = o.epoch + 1, changed_at = now()
  RETURNING o.epoch, o.next;
END;

-- Says, last in the transaction of what was settled, that everything before `next` is. False: another has claimed the
-- partition since, or it is further already: roll back, nothing of it is ours any more.
-- Locks: the partition's row, until the transaction ends. Index: primary key.
CREATE FUNCTION {{schema}}.inbox_offset_move(consumer text, topic text, partition int, epoch bigint, next bigint)
RETURNS boolean
LANGUAGE sql VOLATILE
BEGIN ATOMIC
  WITH moved AS (
    UPDATE {{schema}}.inbox_offset o SET next = inbox_offset_move.next, changed_at = now()
    WHERE o.consumer = inbox_offset_move.consumer AND o.topic = inbox_offset_move.topic
      AND o.partition = inbox_offset_move.partition AND o.epoch = inbox_offset_move.epoch
      AND coalesce(o.next, 0) <= inbox_offset_move.next
    RETURNING 1)
  SELECT EXISTS (SELECT FROM moved);
END;
