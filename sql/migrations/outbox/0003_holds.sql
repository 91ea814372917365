-- What waits and what is given up: holds, DEAD rows, and what operators do about them.
-- Filled in: schema, table, source. Locks: none beyond what it creates.

-- What waits, and why: a row a reason. A claim skips what any of them names; it is let go with the last. One of a whole
-- pipeline: while it is there no instance claims anything, and its rows stay PENDING. Whoever put a reason there ends that
-- one alone:
--   dead      a key has dead rows; ends when the last of them is retried or discarded
--   kafka     a relay found that Kafka does not take the topic; it probes, and ends it
--   operator  a person paused it (outbox_pause), each by their own row; ends by outbox_resume
CREATE TABLE {{schema}}.outbox_hold (
  source    text        COLLATE "C" NOT NULL,
  scope     text        COLLATE "C" NOT NULL,
  topic     text        COLLATE "C" NOT NULL,
  msg_key   text        COLLATE "C" NOT NULL DEFAULT '',
  cause     text        COLLATE "C" NOT NULL DEFAULT 'operator',
  person    text        COLLATE "C" NOT NULL DEFAULT '',
  reason    text        NOT NULL DEFAULT '',
  since     timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT outbox_hold_scope_known CHECK (scope IN ('key', 'topic', 'pipeline')),
  CONSTRAINT outbox_hold_key_only_for_key CHECK (scope = 'key' OR msg_key = ''),
  CONSTRAINT outbox_hold_pipeline_whole CHECK (scope <> 'pipeline' OR topic = ''),
  CONSTRAINT outbox_hold_cause_known CHECK (cause IN ('dead', 'kafka', 'operator')),
  CONSTRAINT outbox_hold_person_of_operator CHECK (cause = 'operator' OR person = ''),
  CONSTRAINT outbox_hold_person_bounded CHECK (octet_length(person) <= 100),  -- all of these must fit an index entry
  PRIMARY KEY (source, scope, topic, msg_key, cause, person)
);

-- A relay may leave out of a claim what lies below an id that it has worked up to (relay/core/claim_floors.hpp). Rows that
-- are let go again lie below. So whoever lets rows go counts up, in the same transaction, and first of all, so that two of
-- them wait for one another before they hold anything else; a claim that knows another count ignores its ids, in its own
-- snapshot. So no later row of a key can be claimed before the earlier ones.
CREATE TABLE {{schema}}.outbox_released (
  source text   COLLATE "C" CONSTRAINT outbox_released_once PRIMARY KEY,
  times  bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
INSERT INTO {{schema}}.outbox_released (source, times) VALUES ({{source}}, 0);

-- Ends a reason of a hold (those of `cause` and `person`; null: whatever they are). With the last one its HELD rows are PENDING
-- again, in the caller's transaction, so no later row of the scope can be claimed before the earlier ones. Rows that another
-- hold covers too are put on hold again by the next claim. Returns how many rows it let go; null: other reasons hold it still.
-- Two that end the last two reasons wait for one another at the count. The reasons are deleted (locked) first and the rows are
-- looked for in a later statement: whoever sets rows HELD locks the reasons FOR SHARE before, so none is left behind.
-- Index: outbox_hold's key; (topic, msg_key, id) of held rows. Locks: the count, the reasons, then the rows.
CREATE FUNCTION {{schema}}.outbox_release(
  source text, scope text, topic text, key text DEFAULT '', cause text DEFAULT NULL, person text DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $outbox$
DECLARE
  of_key CONSTANT text := CASE outbox_release.scope WHEN 'key' THEN outbox_release.key ELSE '' END;
  let_go bigint;
BEGIN
  IF outbox_release.scope NOT IN ('key', 'topic') OR outbox_release.source <> {{source}} THEN
    RAISE EXCEPTION 'outbox_release: no scope % of source % here; scopes are key and topic, the source is %',
      outbox_release.scope, outbox_release.source, {{source}} USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO {{schema}}.outbox_released AS r (source, times) VALUES ({{source}}, 1)
  ON CONFLICT ON CONSTRAINT outbox_released_once DO UPDATE SET times = r.times + 1;
  DELETE FROM {{schema}}.outbox_hold h
  WHERE h.source = outbox_release.source AND h.scope = outbox_release.scope AND h.topic = outbox_release.topic
    AND h.msg_key = of_key
    AND (outbox_release.cause IS NULL OR h.cause = outbox_release.cause)
    AND (outbox_release.person IS NULL OR h.person = outbox_release.person);
  IF EXISTS (SELECT FROM {{schema}}.outbox_hold h
             WHERE h.source = outbox_release.source AND h.scope = outbox_release.scope AND h.topic = outbox_release.topic
               AND h.msg_key = of_key) THEN
    RETURN NULL;
  END IF;
  IF outbox_release.scope = 'key' THEN
    UPDATE {{table}} o SET status = 'PENDING'
    WHERE o.status = 'HELD' AND o.topic = outbox_release.topic AND o.msg_key = outbox_release.key;
  ELSE
    UPDATE {{table}} o SET status = 'PENDING' WHERE o.status = 'HELD' AND o.topic = outbox_release.topic;
  END IF;
  GET DIAGNOSTICS let_go = ROW_COUNT;
  RETURN let_go;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_release(text, text, text, text, text, text) FROM PUBLIC;

-- Ends a key's reason `dead` where no row of the key is DEAD any more; what outbox_release answers, null too while one is.
-- The reason is locked before the rows are looked at, as whoever makes a row DEAD does: of two at once one sees what the
-- other did. Index and locks: as outbox_release.
CREATE FUNCTION {{schema}}.outbox_dead_hold_end(topic text, key text) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $outbox$
BEGIN
  INSERT INTO {{schema}}.outbox_released AS r (source, times) VALUES ({{source}}, 1)
  ON CONFLICT ON CONSTRAINT outbox_released_once DO UPDATE SET times = r.times + 1;
  PERFORM FROM {{schema}}.outbox_hold h
  WHERE h.source = {{source}} AND h.scope = 'key' AND h.topic = outbox_dead_hold_end.topic
    AND h.msg_key = outbox_dead_hold_end.key AND h.cause = 'dead' FOR UPDATE;
  IF EXISTS (SELECT FROM {{table}} o WHERE o.status = 'DEAD' AND o.topic = outbox_dead_hold_end.topic
                                       AND o.msg_key = outbox_dead_hold_end.key) THEN
    RETURN NULL;
  END IF;
  RETURN {{schema}}.outbox_release({{source}}, 'key', outbox_dead_hold_end.topic, outbox_dead_hold_end.key, cause => 'dead');
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_dead_hold_end(text, text) FROM PUBLIC;

-- Takes one row out of DEAD; when it was the last dead row of its key, that reason of the key's hold ends with it. The reason is
-- locked first, so that of two at once one sees what the other did. False: there is no such dead row.
CREATE FUNCTION {{schema}}.outbox_dead_end(row_id bigint, new_status text, note text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $outbox$
DECLARE
  m record;
BEGIN
  SELECT o.created_at, o.topic, o.msg_key INTO m FROM {{table}} o WHERE o.id = row_id AND o.status = 'DEAD';
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO {{schema}}.outbox_released AS r (source, times) VALUES ({{source}}, 1)
  ON CONFLICT ON CONSTRAINT outbox_released_once DO UPDATE SET times = r.times + 1;
  PERFORM 1 FROM {{schema}}.outbox_hold h
  WHERE h.source = {{source}} AND h.scope = 'key' AND h.topic = m.topic AND h.msg_key = m.msg_key AND h.cause = 'dead'
  FOR UPDATE;
  UPDATE {{table}} o
  SET status = new_status,
      generation = o.generation + (new_status = 'PENDING')::int,
      last_error = left(concat_ws(' | ', note, o.last_error), 2000)
  WHERE o.id = row_id AND o.created_at = m.created_at AND o.status = 'DEAD';
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF m.msg_key IS NOT NULL THEN
    PERFORM {{schema}}.outbox_dead_hold_end(m.topic, m.msg_key);
  END IF;
  RETURN true;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_dead_end(bigint, text, text) FROM PUBLIC;

-- Sends a dead row again, before the later rows of its key. Its generation rises, so that a record of the earlier sending
-- can't vouch for this one.
CREATE FUNCTION {{schema}}.outbox_dead_retry(id bigint) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN {{schema}}.outbox_dead_end(id, 'PENDING', 'retried by ' || session_user);
REVOKE ALL ON FUNCTION {{schema}}.outbox_dead_retry(bigint) FROM PUBLIC;

-- Gives a dead row up for good; the reason stays with it.
CREATE FUNCTION {{schema}}.outbox_dead_discard(id bigint, reason text) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN {{schema}}.outbox_dead_end(id, 'DISCARDED', 'discarded by ' || session_user || ': ' || reason);
REVOKE ALL ON FUNCTION {{schema}}.outbox_dead_discard(bigint, text) FROM PUBLIC;

-- Puts a key, a topic, or the whole pipeline on hold, for a reason of this person's own beside whatever else holds it; false: it
-- was already, by this person. Instances hear of a pipeline's at once, or with their next lease.
-- Locks: the reason. Index: outbox_hold's key.
CREATE FUNCTION {{schema}}.outbox_pause(scope text, topic text, key text, reason text, person text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
DECLARE
  put bigint;
BEGIN
  IF (outbox_pause.scope IN ('key', 'topic', 'pipeline')) IS NOT TRUE THEN
    RAISE EXCEPTION 'outbox_pause: no scope %; there are key, topic and pipeline', outbox_pause.scope
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF octet_length(outbox_pause.person) > 100 THEN
    RAISE EXCEPTION 'outbox_pause: the name of the person has % bytes, and may have 100', octet_length(outbox_pause.person)
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO {{schema}}.outbox_hold AS h (source, scope, topic, msg_key, cause, person, reason)
  VALUES ({{source}}, outbox_pause.scope, CASE outbox_pause.scope WHEN 'pipeline' THEN '' ELSE outbox_pause.topic END,
          CASE outbox_pause.scope WHEN 'key' THEN outbox_pause.key ELSE '' END, 'operator', coalesce(outbox_pause.person, ''),
          format('operator: %s (%s)', outbox_pause.reason, outbox_pause.person))
  ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS put = ROW_COUNT;
  PERFORM {{schema}}.outbox_operation_begin(
    'pause', jsonb_build_object('scope', outbox_pause.scope, 'topic', outbox_pause.topic, 'key', outbox_pause.key,
                                'was_on_hold', put = 0),
    outbox_pause.reason, outbox_pause.person);
  IF outbox_pause.scope = 'pipeline' THEN
    PERFORM pg_notify('outbox_lane', '');
  END IF;
  RETURN put > 0;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_pause(text, text, text, text, text) FROM PUBLIC;

-- Ends a pause: that of `paused_by`; null: the person's own, or the only one. Other reasons stay, and so does the hold while there
-- is one: a key waits for its dead rows, a topic for Kafka. A key's reason `dead` ends with it only where no row of the key is
-- DEAD any more (somebody deleted it).
-- lifted: whose pause ended, null: nobody's. let_go: how many rows waited HELD behind it, null: it was not let go. still: the
-- reasons that hold it, null: none.
-- Locks: the count, the reasons, then the rows. Index: outbox_hold's key; (topic, msg_key, id) of held rows.
CREATE FUNCTION {{schema}}.outbox_resume(
  scope text, topic text, key text, reason text, person text, paused_by text DEFAULT NULL,
  OUT lifted text, OUT let_go bigint, OUT still text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
DECLARE
  of_topic CONSTANT text := CASE outbox_resume.scope WHEN 'pipeline' THEN '' ELSE outbox_resume.topic END;
  of_key CONSTANT text := CASE outbox_resume.scope WHEN 'key' THEN coalesce(outbox_resume.key, '') ELSE '' END;
  people text[];
  number bigint;
BEGIN
  IF (outbox_resume.scope IN ('key', 'topic', 'pipeline')) IS NOT TRUE THEN
    RAISE EXCEPTION 'outbox_resume: no scope %; there are key, topic and pipeline', outbox_resume.scope
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT array_agg(h.person ORDER BY h.person) INTO people FROM {{schema}}.outbox_hold h
  WHERE h.source = {{source}} AND h.scope = outbox_resume.scope AND h.topic = of_topic AND h.msg_key = of_key
    AND h.cause = 'operator' AND h.person = coalesce(outbox_resume.paused_by, h.person);
  IF outbox_resume.person = ANY (people) AND outbox_resume.paused_by IS NULL THEN
    lifted := outbox_resume.person;
  ELSIF cardinality(people) > 1 THEN
    RAISE EXCEPTION 'paused by %: say whose pause ends', array_to_string(people, ' and ')
      USING ERRCODE = 'invalid_parameter_value';
  ELSE
    lifted := people[1];
  END IF;
  IF outbox_resume.scope = 'pipeline' THEN
    DELETE FROM {{schema}}.outbox_hold h
    WHERE h.source = {{source}} AND h.scope = 'pipeline' AND h.person = lifted;
    PERFORM pg_notify('outbox_lane', '');
  ELSE
    IF lifted IS NOT NULL THEN
      let_go := {{schema}}.outbox_release({{source}}, outbox_resume.scope, of_topic, of_key, cause => 'operator', person => lifted);
    END IF;
    IF outbox_resume.scope = 'key' AND let_go IS NULL THEN
      let_go := {{schema}}.outbox_dead_hold_end(of_topic, of_key);
    ELSIF let_go IS NULL AND NOT EXISTS (
        SELECT FROM {{schema}}.outbox_hold h
        WHERE h.source = {{source}} AND h.scope = outbox_resume.scope AND h.topic = of_topic) THEN
      let_go := {{schema}}.outbox_release({{source}}, outbox_resume.scope, of_topic);
    END IF;
  END IF;
  SELECT string_agg(CASE h.cause WHEN 'dead' THEN 'dead: ' || h.reason ELSE h.reason END, '; ' ORDER BY h.since, h.person) INTO still
  FROM {{schema}}.outbox_hold h
  WHERE h.source = {{source}} AND h.scope = outbox_resume.scope AND h.topic = of_topic AND h.msg_key = of_key;
  IF outbox_resume.scope = 'pipeline' AND lifted IS NOT NULL AND still IS NULL THEN
    let_go := 0;
  END IF;
  number := {{schema}}.outbox_operation_begin(
    'resume', jsonb_build_object('scope', outbox_resume.scope, 'topic', outbox_resume.topic, 'key', outbox_resume.key,
                                 'paused_by', lifted, 'still', still),
    outbox_resume.reason, outbox_resume.person);
  UPDATE {{schema}}.outbox_operation o SET rows = coalesce(let_go, 0) WHERE o.id = number;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_resume(text, text, text, text, text, text) FROM PUBLIC;
