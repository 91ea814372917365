-- Messages that could not be applied, and the keys that wait behind them. Filled in: schema.
-- Locks: only on what it creates.
--
-- A parked key is a row that both the live path and a retry lock: the live path sends what comes for the key to its queue,
-- a retry applies the head of the queue, and the row goes, in the transaction that empties the queue. So none overtakes.

-- Messages that were not applied, as they came, for an operator. A record of Kafka that comes again is here once
-- (insert with ON CONFLICT DO NOTHING); a topic made again has the same offsets, and two messages may well have the same payload.
-- parked: belongs to its key's queue, in the order of id. retry_at: somebody asked to have it applied after all; waits: how often
-- it was put off since.
CREATE TABLE {{schema}}.dead_msgs (
  id             bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  consumer       text        COLLATE "C" NOT NULL,
  msg_id         uuid,
  topic          text        COLLATE "C" NOT NULL,
  partition      int         NOT NULL,
  "offset"       bigint      NOT NULL,
  msg_key        bytea,
  body           bytea,
  headers        jsonb       NOT NULL DEFAULT '[]',
  verdict        text        COLLATE "C" NOT NULL,
  error          text        NOT NULL DEFAULT '',
  attempts       int         NOT NULL DEFAULT 1,
  payload_sha256 bytea,
  created_at     timestamptz NOT NULL DEFAULT now(),
  resolved_at    timestamptz,
  resolution     text,
  parked         boolean     NOT NULL DEFAULT false,
  retry_at       timestamptz,
  waits          int         NOT NULL DEFAULT 0,
  key_sha256     bytea       GENERATED ALWAYS AS (sha256(msg_key)) STORED,
  CONSTRAINT dead_msgs_headers_list CHECK (jsonb_typeof(headers) = 'array'),
  CONSTRAINT dead_msgs_resolved_with_resolution CHECK ((resolved_at IS NULL) = (resolution IS NULL)),
  CONSTRAINT dead_msgs_once UNIQUE NULLS NOT DISTINCT (consumer, topic, partition, "offset", payload_sha256, msg_id)
);
CREATE INDEX ON {{schema}}.dead_msgs (consumer, msg_id) WHERE resolved_at IS NULL;
CREATE INDEX ON {{schema}}.dead_msgs (consumer, topic, key_sha256, id) WHERE parked AND resolved_at IS NULL;
CREATE INDEX ON {{schema}}.dead_msgs (consumer, retry_at) WHERE retry_at IS NOT NULL AND NOT parked;

COMMENT ON COLUMN {{schema}}.dead_msgs.headers IS 'array of [name, value], in the order they came; what is not UTF-8 as {"base64": …}';

CREATE TABLE {{schema}}.inbox_parked_key (
  consumer   text        COLLATE "C" NOT NULL,
  topic      text        COLLATE "C" NOT NULL,
  key_sha256 bytea       NOT NULL,
  msg_key    bytea       NOT NULL,
  since      timestamptz NOT NULL DEFAULT now(),
  retry_at   timestamptz,
  PRIMARY KEY (consumer, topic, key_sha256)
);
COMMENT ON TABLE {{schema}}.inbox_parked_key IS
  'keys whose messages wait in dead_msgs, in order; retry_at: a running consumer applies them from then on';

-- ---------------------------------------------------------------------------------------------------------------------
-- What a consumer calls, in a transaction of its own for each message: take, then the handler, then done; or, after a
-- rollback, failed or later in another. With the caller's rights.

-- The next message that somebody wants applied after all, locked with its key; none: an empty result. Keys first, each from
-- the head of its queue; what another session has locked is passed over.
-- Locks: the key's row, the message's row. Index: primary key of inbox_parked_key; the queue's and the retry's index.
CREATE FUNCTION {{schema}}.inbox_dead_take(of_consumer text) RETURNS SETOF {{schema}}.dead_msgs
LANGUAGE plpgsql VOLATILE
AS $outbox$
DECLARE
  k record;
  head {{schema}}.dead_msgs;
BEGIN
  LOOP
    SELECT p.topic, p.key_sha256 INTO k FROM {{schema}}.inbox_parked_key p
    WHERE p.consumer = of_consumer AND p.retry_at <= clock_timestamp()
    ORDER BY p.retry_at LIMIT 1 FOR UPDATE SKIP LOCKED;
    EXIT WHEN NOT FOUND;
    SELECT * INTO head FROM {{schema}}.dead_msgs d
    WHERE d.consumer = of_consumer AND d.topic = k.topic AND d.key_sha256 = k.key_sha256
      AND d.parked AND d.resolved_at IS NULL
    ORDER BY d.id LIMIT 1;
    IF FOUND THEN
      RETURN NEXT head;
      RETURN;
    END IF;
    DELETE FROM {{schema}}.inbox_parked_key p
    WHERE p.consumer = of_consumer AND p.topic = k.topic AND p.key_sha256 = k.key_sha256;
  END LOOP;
  RETURN QUERY
    SELECT * FROM {{schema}}.dead_msgs d
    WHERE d.consumer = of_consumer AND d.retry_at <= clock_timestamp() AND NOT d.parked AND d.resolved_at IS NULL
    ORDER BY d.retry_at LIMIT 1 FOR UPDATE SKIP LOCKED;
END
$outbox$;

-- Lets a key go where its queue is empty; where only those wait that did nothing wrong, they are applied now. The caller
-- has locked the key's row. Index: the queue's index, primary key of inbox_parked_key.
CREATE FUNCTION {{schema}}.inbox_key_advance(of_consumer text, of_topic text, key bytea) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $outbox$
BEGIN
  IF NOT EXISTS (SELECT FROM {{schema}}.dead_msgs d
                 WHERE d.consumer = of_consumer AND d.topic = of_topic AND d.key_sha256 = key
                   AND d.parked AND d.resolved_at IS NULL) THEN
    DELETE FROM {{schema}}.inbox_parked_key p
    WHERE p.consumer = of_consumer AND p.topic = of_topic AND p.key_sha256 = key;
    RETURN;
  END IF;
  UPDATE {{schema}}.inbox_parked_key p SET retry_at = clock_timestamp()
  WHERE p.consumer = of_consumer AND p.topic = of_topic AND p.key_sha256 = key AND p.retry_at IS NULL
    AND NOT EXISTS (SELECT FROM {{schema}}.dead_msgs d
                    WHERE d.consumer = of_consumer AND d.topic = of_topic AND d.key_sha256 = key
                      AND d.parked AND d.resolved_at IS NULL AND d.verdict <> 'parked');
END
$outbox$;

-- The message that was taken is done: applied, or stale. Its key goes on, or is let go with the last of its queue.
CREATE FUNCTION {{schema}}.inbox_dead_done(dead_id bigint, how text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $outbox$
DECLARE
  d record;
BEGIN
  UPDATE {{schema}}.dead_msgs m SET resolved_at = clock_timestamp(), resolution = how, retry_at = NULL, attempts = m.attempts + 1
  WHERE m.id = dead_id AND m.resolved_at IS NULL
  RETURNING m.consumer, m.topic, m.key_sha256, m.parked INTO d;
  IF d.parked THEN
    PERFORM {{schema}}.inbox_key_advance(d.consumer, d.topic, d.key_sha256);
  END IF;
END
$outbox$;

-- It failed again: it waits for the next word of a person, and with it its key.
CREATE FUNCTION {{schema}}.inbox_dead_failed(dead_id bigint, why text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $outbox$
DECLARE
  d record;
BEGIN
  UPDATE {{schema}}.dead_msgs m
  SET retry_at = NULL, waits = 0, attempts = m.attempts + 1, error = left(why, 2000),
      verdict = CASE m.verdict WHEN 'parked' THEN 'failed' ELSE m.verdict END
  WHERE m.id = dead_id AND m.resolved_at IS NULL
  RETURNING m.consumer, m.topic, m.key_sha256, m.parked INTO d;
  IF d.parked THEN
    UPDATE {{schema}}.inbox_parked_key p SET retry_at = NULL
    WHERE p.consumer = d.consumer AND p.topic = d.topic AND p.key_sha256 = d.key_sha256;
  END IF;
END
$outbox$;

-- Not now, and it is no fault of its own: it is taken again after `wait`, and not before a backoff is over that doubles from a
-- second to ten minutes. So those that are wanted take turns. `why` is kept as its error.
CREATE FUNCTION {{schema}}.inbox_dead_later(dead_id bigint, wait interval, why text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $outbox$
DECLARE
  d record;
  due timestamptz;
BEGIN
  SELECT clock_timestamp() + greatest(wait, least(interval '1 second' * 2 ^ least(m.waits, 20), interval '10 minutes'))
  INTO due FROM {{schema}}.dead_msgs m WHERE m.id = dead_id;
  UPDATE {{schema}}.dead_msgs m
  SET retry_at = CASE WHEN m.parked THEN NULL ELSE due END, waits = m.waits + 1, error = coalesce(left(why, 2000), m.error)
  WHERE m.id = dead_id AND m.resolved_at IS NULL
  RETURNING m.consumer, m.topic, m.key_sha256, m.parked INTO d;
  IF d.parked THEN
    UPDATE {{schema}}.inbox_parked_key p SET retry_at = due
    WHERE p.consumer = d.consumer AND p.topic = d.topic AND p.key_sha256 = d.key_sha256;
  END IF;
END
$outbox$;

-- ---------------------------------------------------------------------------------------------------------------------
-- What a person calls.

-- Has a dead message applied after all by a running consumer, soon; of a parked key the whole queue, in order, as far as it
-- goes. False: there is no such message, or it is resolved. 55000: a conflict or a malformed message can't be applied: one
-- has the id of another message, the other has none.
-- Locks: the key's row or the message's. Index: primary keys.
CREATE FUNCTION {{schema}}.inbox_dead_retry(dead_id bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
DECLARE
  d record;
BEGIN
  SELECT m.consumer, m.topic, m.key_sha256, m.parked, m.verdict INTO d
  FROM {{schema}}.dead_msgs m WHERE m.id = dead_id AND m.resolved_at IS NULL;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF d.verdict IN ('conflict', 'malformed') THEN
    RAISE EXCEPTION 'dead message % is %: it can be discarded, not applied', dead_id, d.verdict
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  IF d.parked THEN
    UPDATE {{schema}}.inbox_parked_key p SET retry_at = clock_timestamp()
    WHERE p.consumer = d.consumer AND p.topic = d.topic AND p.key_sha256 = d.key_sha256;
  ELSE
    UPDATE {{schema}}.dead_msgs m SET retry_at = clock_timestamp(), waits = 0 WHERE m.id = dead_id AND m.resolved_at IS NULL;
  END IF;
  RETURN FOUND;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.inbox_dead_retry(bigint) FROM PUBLIC;

-- Gives a dead message up for good, with the reason; it stays on record, and a copy of it is a duplicate. What waited
-- behind it is applied, unless another failed message of the key is left. False: as inbox_dead_retry.
-- Locks: the key's row, then the message's, then its dedup row. Index: primary keys.
CREATE FUNCTION {{schema}}.inbox_dead_discard(dead_id bigint, reason text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
DECLARE
  d record;
BEGIN
  IF coalesce(btrim(reason), '') = '' THEN
    RAISE EXCEPTION 'inbox_dead_discard: a reason is needed' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT m.consumer, m.topic, m.key_sha256, m.parked, m.verdict, m.msg_id INTO d
  FROM {{schema}}.dead_msgs m WHERE m.id = dead_id AND m.resolved_at IS NULL;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF d.parked THEN
    PERFORM 1 FROM {{schema}}.inbox_parked_key p
    WHERE p.consumer = d.consumer AND p.topic = d.topic AND p.key_sha256 = d.key_sha256 FOR UPDATE;
  END IF;
  UPDATE {{schema}}.dead_msgs m
  SET resolved_at = clock_timestamp(), retry_at = NULL,
      resolution = left('discarded by ' || session_user || ': ' || reason, 2000)
  WHERE m.id = dead_id AND m.resolved_at IS NULL;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF d.verdict NOT IN ('conflict', 'malformed') THEN
    UPDATE {{schema}}.processed_msgs p SET state = 'discarded'
    WHERE p.consumer = d.consumer AND p.msg_id = d.msg_id AND p.id_time = {{schema}}.outbox_id_time(d.msg_id)
      AND p.state IN ('parked', 'dead');
  END IF;
  IF d.parked THEN
    PERFORM {{schema}}.inbox_key_advance(d.consumer, d.topic, d.key_sha256);
  END IF;
  RETURN true;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.inbox_dead_discard(bigint, text) FROM PUBLIC;
