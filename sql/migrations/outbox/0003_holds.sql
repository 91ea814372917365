-- What waits and what is given up: holds, DEAD rows, and what operators do about them.
-- Filled in: schema, table, source. Locks: none beyond what it creates.

-- What waits, and why. A claim skips what a hold names. One of a whole pipeline: while it is there no instance claims
-- anything, and its rows stay PENDING.
CREATE TABLE {{schema}}.outbox_hold (
  source    text        COLLATE "C" NOT NULL,
  scope     text        COLLATE "C" NOT NULL,
  topic     text        COLLATE "C" NOT NULL,
  msg_key   text        COLLATE "C" NOT NULL DEFAULT '',
  reason    text        NOT NULL DEFAULT '',
  since     timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT outbox_hold_scope_known CHECK (scope IN ('key', 'topic', 'pipeline')),
  CONSTRAINT outbox_hold_key_only_for_key CHECK (scope = 'key' OR msg_key = ''),
  CONSTRAINT outbox_hold_pipeline_whole CHECK (scope <> 'pipeline' OR topic = ''),
  PRIMARY KEY (source, scope, topic, msg_key)
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

-- Ends a hold: its HELD rows are PENDING again and the hold is gone, in the caller's transaction, so no later row of the
-- scope can be claimed before the earlier ones. Rows that another hold covers too are put on hold again by the next
-- claim. Returns how many rows it let go.
-- The hold is deleted (locked) first and the rows are looked for in a later statement: whoever sets rows HELD locks the
-- hold FOR SHARE before, so none is left behind.
-- Index: (topic, msg_key, id) of held rows. Locks: the count, the hold, then the rows.
CREATE FUNCTION {{schema}}.outbox_release(source text, scope text, topic text, key text DEFAULT '') RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $outbox$
DECLARE
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
    AND h.msg_key = CASE outbox_release.scope WHEN 'key' THEN outbox_release.key ELSE '' END;
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
REVOKE ALL ON FUNCTION {{schema}}.outbox_release(text, text, text, text) FROM PUBLIC;

-- Takes one row out of DEAD; when it was the last dead row of its key, the key's hold ends with it. The key's hold is
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
  WHERE h.source = {{source}} AND h.scope = 'key' AND h.topic = m.topic AND h.msg_key = m.msg_key FOR UPDATE;
  UPDATE {{table}} o
  SET status = new_status,
      generation = o.generation + (new_status = 'PENDING')::int,
      last_error = left(concat_ws(' | ', note, o.last_error), 2000)
  WHERE o.id = row_id AND o.created_at = m.created_at AND o.status = 'DEAD';
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF m.msg_key IS NOT NULL AND NOT EXISTS (
       SELECT 1 FROM {{table}} o WHERE o.status = 'DEAD' AND o.topic = m.topic AND o.msg_key = m.msg_key) THEN
    PERFORM {{schema}}.outbox_release({{source}}, 'key', m.topic, m.msg_key);
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

-- Puts a key, a topic, or the whole pipeline on hold; false: it was already, by an operator. An operator's hold takes the
-- place of a relay's own on the same topic, which that relay would release by itself. Instances hear of a pipeline's at
-- once, or with their next lease.
-- Locks: the hold. Index: outbox_hold's key.
CREATE FUNCTION {{schema}}.outbox_pause(scope text, topic text, key text, reason text, person text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
#variable_conflict use_column
DECLARE
  put bigint;
BEGIN
  IF (outbox_pause.scope IN ('key', 'topic', 'pipeline')) IS NOT TRUE THEN
    RAISE EXCEPTION 'outbox_pause: no scope %; there are key, topic and pipeline', outbox_pause.scope
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO {{schema}}.outbox_hold AS h (source, scope, topic, msg_key, reason)
  VALUES ({{source}}, outbox_pause.scope, CASE outbox_pause.scope WHEN 'pipeline' THEN '' ELSE outbox_pause.topic END,
          CASE outbox_pause.scope WHEN 'key' THEN outbox_pause.key ELSE '' END,
          format('operator: %s (%s)', outbox_pause.reason, outbox_pause.person))
  ON CONFLICT (source, scope, topic, msg_key)
  DO UPDATE SET reason = excluded.reason, since = excluded.since WHERE starts_with(h.reason, 'kafka: ');
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

-- Lets go what is on hold, whoever put it there; how many rows waited HELD behind it, null where nothing was on hold.
-- Locks: the hold, then the rows. Index: outbox_hold's key; (topic, msg_key, id) of held rows.
CREATE FUNCTION {{schema}}.outbox_resume(scope text, topic text, key text, reason text, person text) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
DECLARE
  let_go bigint;
  number bigint;
BEGIN
  IF outbox_resume.scope = 'pipeline' THEN
    DELETE FROM {{schema}}.outbox_hold h WHERE h.source = {{source}} AND h.scope = 'pipeline';
    let_go := CASE WHEN FOUND THEN 0 END;
    PERFORM pg_notify('outbox_lane', '');
  ELSE
    let_go := {{schema}}.outbox_release({{source}}, outbox_resume.scope, outbox_resume.topic, coalesce(outbox_resume.key, ''));
  END IF;
  number := {{schema}}.outbox_operation_begin(
    'resume', jsonb_build_object('scope', outbox_resume.scope, 'topic', outbox_resume.topic, 'key', outbox_resume.key),
    outbox_resume.reason, outbox_resume.person);
  UPDATE {{schema}}.outbox_operation o SET rows = coalesce(let_go, 0) WHERE o.id = number;
  RETURN let_go;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_resume(text, text, text, text, text) FROM PUBLIC;
