-- The consumer's rules for programs in any language: each function is called in the transaction of the program's own
-- writes, with the program's rights. docs/consumer.md shows a whole consumer. Filled in: schema.
-- Locks: none beyond CREATE FUNCTION.

-- Claims one message and says what it is:
--   fresh      process it in this transaction, then COMMIT, and only then move Kafka's offset
--   duplicate  its effect is there: COMMIT, which waits for the standby if one is synchronous, and move the offset
--   stale      a later message of its key was applied (only where seq is given): COMMIT, move the offset
--   conflict   its id was used by another payload; expired: it is older than what is remembered; parked: its key waits
--              behind an earlier message. Call inbox_park with that verdict, COMMIT, move the offset
-- Waits while another transaction has the same id in hand. 40001: roll back and begin again, the id came or went meanwhile.
-- A COMMIT that is answered with a WARNING (the wait for a synchronous standby was cancelled) is in doubt: offer the message
-- again, and move no offset.
-- payload_sha256: of the body's bytes; 32 zero bytes for a tombstone. READ COMMITTED only, since what others commit
-- meanwhile must be seen (0A000). A commit that is not durable is made so: the offset moves on the word of it.
-- Locks: the message's row in processed_msgs; its key's in inbox_parked_key, its chain's in inbox_seq. Index: primary keys.
CREATE FUNCTION {{schema}}.inbox_begin(
  consumer text, msg_id uuid, payload_sha256 bytea, topic text, partition int, "offset" bigint,
  msg_key bytea DEFAULT NULL, seq bigint DEFAULT NULL, source text DEFAULT '')
RETURNS text LANGUAGE plpgsql VOLATILE
AS $outbox$
#variable_conflict use_column
DECLARE
  this_time CONSTANT timestamptz := {{schema}}.outbox_id_time(inbox_begin.msg_id);
  known bytea;
  before bigint;
  verdict text := 'fresh';
  new_state text;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'inbox_begin: the transaction is %, and must be read committed', current_setting('transaction_isolation')
      USING ERRCODE = 'feature_not_supported';
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  INSERT INTO {{schema}}.processed_msgs (consumer, msg_id, id_time, state, payload_sha256, topic, partition, "offset")
  VALUES (inbox_begin.consumer, inbox_begin.msg_id, this_time, 'applied', inbox_begin.payload_sha256, inbox_begin.topic,
          inbox_begin.partition, inbox_begin."offset")
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    SELECT p.payload_sha256 INTO known FROM {{schema}}.processed_msgs p
    WHERE p.consumer = inbox_begin.consumer AND p.msg_id = inbox_begin.msg_id AND p.id_time = this_time;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'inbox_begin: % came or went meanwhile: roll back and begin again', inbox_begin.msg_id
        USING ERRCODE = 'serialization_failure';
    END IF;
    -- The offset will move on another's commit: this one writes to the log, so that its COMMIT waits for whatever that one's did.
    PERFORM pg_logical_emit_message(true, 'outbox', '');
    RETURN CASE WHEN known = inbox_begin.payload_sha256 THEN 'duplicate' ELSE 'conflict' END;
  END IF;

  IF this_time > '-infinity' AND EXISTS (SELECT FROM {{schema}}.inbox_consumer c
                                         WHERE c.consumer = inbox_begin.consumer AND this_time < c.low_water) THEN
    verdict := 'expired'; new_state := 'dead';
  ELSIF inbox_begin.msg_key IS NOT NULL THEN
    PERFORM 1 FROM {{schema}}.inbox_parked_key k
    WHERE k.consumer = inbox_begin.consumer AND k.topic = inbox_begin.topic
      AND k.key_sha256 = sha256(inbox_begin.msg_key) FOR UPDATE;
    IF FOUND THEN
      verdict := 'parked'; new_state := 'parked';
    ELSIF inbox_begin.seq IS NOT NULL THEN
      INSERT INTO {{schema}}.inbox_seq AS s (consumer, topic, chain, seq)
      VALUES (inbox_begin.consumer, inbox_begin.topic,
              sha256(convert_to(coalesce(inbox_begin.source, '') || E'\n', 'UTF8') || inbox_begin.msg_key), inbox_begin.seq)
      ON CONFLICT (consumer, topic, chain) DO UPDATE SET previous = s.seq, seq = greatest(s.seq, excluded.seq)
      RETURNING s.previous INTO before;
      IF before > inbox_begin.seq THEN
        verdict := 'stale'; new_state := 'discarded';
      END IF;
    END IF;
  END IF;
  IF new_state IS NOT NULL THEN
    UPDATE {{schema}}.processed_msgs p SET state = new_state
    WHERE p.consumer = inbox_begin.consumer AND p.msg_id = inbox_begin.msg_id AND p.id_time = this_time;
  END IF;
  RETURN verdict;
END
$outbox$;

-- Keeps a message in dead_msgs, as it came, for an operator. verdict:
--   conflict, expired, parked  what inbox_begin said, in the same transaction
--   failed, rejected           the program gave it up: in a transaction where inbox_begin said fresh and nothing else was
--                              done. `failed` parks its key, unless park is false or it has none, and later ones follow it
--   malformed                  it has no id: msg_id is null, and inbox_begin was not called
-- headers: [[name, value], …] in their order; a null value is null, one that is not UTF-8 {"base64": "…"}.
-- A record that is kept already is kept once. Locks: the key's row. Index: primary keys, dead_msgs_once.
CREATE FUNCTION {{schema}}.inbox_park(
  consumer text, msg_id uuid, payload_sha256 bytea, topic text, partition int, "offset" bigint, msg_key bytea, body bytea,
  headers jsonb, verdict text, error text DEFAULT '', attempts int DEFAULT 1, park boolean DEFAULT true)
RETURNS void LANGUAGE plpgsql VOLATILE
AS $outbox$
#variable_conflict use_column
DECLARE
  given CONSTANT text := inbox_park.verdict;
  parks CONSTANT boolean := given = 'failed' AND inbox_park.park AND inbox_park.msg_key IS NOT NULL;
BEGIN
  IF (given IN ('conflict', 'expired', 'parked', 'failed', 'rejected', 'malformed')
      AND (inbox_park.msg_id IS NULL) = (given = 'malformed')) IS NOT TRUE THEN
    RAISE EXCEPTION 'inbox_park: verdict % with msg_id %: conflict, expired, parked, failed and rejected have one, malformed none',
      given, inbox_park.msg_id USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF given IN ('failed', 'rejected') THEN
    UPDATE {{schema}}.processed_msgs p SET state = CASE WHEN parks THEN 'parked' ELSE 'dead' END
    WHERE p.consumer = inbox_park.consumer AND p.msg_id = inbox_park.msg_id
      AND p.id_time = {{schema}}.outbox_id_time(inbox_park.msg_id);
    IF NOT FOUND THEN
      RAISE EXCEPTION 'inbox_park: call inbox_begin for % first', inbox_park.msg_id
        USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
  END IF;
  IF parks THEN
    INSERT INTO {{schema}}.inbox_parked_key (consumer, topic, key_sha256, msg_key)
    VALUES (inbox_park.consumer, inbox_park.topic, sha256(inbox_park.msg_key), inbox_park.msg_key)
    ON CONFLICT (consumer, topic, key_sha256) DO UPDATE SET msg_key = excluded.msg_key;  -- locked: it can't be let go meanwhile
  END IF;
  INSERT INTO {{schema}}.dead_msgs
    (consumer, msg_id, topic, partition, "offset", msg_key, body, headers, verdict, error, attempts, payload_sha256, parked)
  VALUES (inbox_park.consumer, inbox_park.msg_id, inbox_park.topic, inbox_park.partition, inbox_park."offset",
          inbox_park.msg_key, inbox_park.body, inbox_park.headers, given, left(inbox_park.error, 2000), inbox_park.attempts,
          inbox_park.payload_sha256, parks OR given = 'parked')
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    PERFORM pg_logical_emit_message(true, 'outbox', '');  -- kept by another's commit: as in inbox_begin
  END IF;
END
$outbox$;

-- After inbox_dead_take: true: the message that it answered may be applied in this transaction, which then calls
-- inbox_dead_done; false: it is not dead any more, so only inbox_dead_done is left to call.
-- Locks: the message's row in processed_msgs. Index: primary key.
CREATE FUNCTION {{schema}}.inbox_revive(consumer text, msg_id uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $outbox$
#variable_conflict use_column
BEGIN
  UPDATE {{schema}}.processed_msgs p SET state = 'applied', processed_at = now()
  WHERE p.consumer = inbox_revive.consumer AND p.msg_id = inbox_revive.msg_id
    AND p.id_time = {{schema}}.outbox_id_time(inbox_revive.msg_id) AND p.state IN ('parked', 'dead');
  RETURN FOUND;
END
$outbox$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Offsets of consumers that keep them beside their effects, by partition.

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

-- Makes the caller the partition's owner: under a higher epoch than any before, from where the last one came to. It does not wait
-- long for an owner that froze between the move of its offset and its commit: it asks again, and may stop meanwhile.
-- Locks: the partition's row. Index: primary key.
CREATE FUNCTION {{schema}}.inbox_offset_claim(
  consumer text, topic text, partition int, OUT epoch bigint, OUT next bigint)
LANGUAGE sql VOLATILE SET lock_timeout = '1s'
BEGIN ATOMIC
  INSERT INTO {{schema}}.inbox_offset AS o (consumer, topic, partition)
  VALUES (inbox_offset_claim.consumer, inbox_offset_claim.topic, inbox_offset_claim.partition)
  ON CONFLICT (consumer, topic, partition) DO UPDATE SET epoch = o.epoch + 1, changed_at = now()
  RETURNING o.epoch, o.next;
END;

-- Where a partition starts whose group has committed nothing: at `next`, or where that was decided before. Kafka forgets the offsets
-- of a group that was empty for a week; without this, who starts at the end would then skip what came meanwhile.
-- Locks: the partition's row. Index: primary key.
CREATE FUNCTION {{schema}}.inbox_offset_start(consumer text, topic text, partition int, next bigint) RETURNS bigint
LANGUAGE sql VOLATILE SET lock_timeout = '1s'
BEGIN ATOMIC
  INSERT INTO {{schema}}.inbox_offset AS o (consumer, topic, partition, next)
  VALUES (inbox_offset_start.consumer, inbox_offset_start.topic, inbox_offset_start.partition, inbox_offset_start.next)
  ON CONFLICT (consumer, topic, partition) DO UPDATE SET next = coalesce(o.next, excluded.next), changed_at = now()
  RETURNING o.next;
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
