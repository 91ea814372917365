-- What operators do, as functions, so that their own role can do it, and who did what and why.
-- Filled in: schema, table, source. Locks: ACCESS EXCLUSIVE on outbox_hold for a moment; else only on what it creates.

-- A hold of a whole pipeline: while it is there no instance claims anything. Its rows stay PENDING.
ALTER TABLE {{schema}}.outbox_hold
  DROP CONSTRAINT outbox_hold_scope_known,
  ADD CONSTRAINT outbox_hold_scope_known CHECK (scope IN ('key', 'topic', 'partition', 'pipeline')),
  ADD CONSTRAINT outbox_hold_pipeline_whole CHECK (scope <> 'pipeline' OR topic = '');

-- One row a command. `db_role` logged in; `person` is who ran the program, as far as that can be told.
CREATE TABLE {{schema}}.outbox_operation (
  id      bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  source  text        COLLATE "C" NOT NULL DEFAULT {{source}},
  at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  db_role text        COLLATE "C" NOT NULL DEFAULT session_user,
  person  text        NOT NULL,
  action  text        COLLATE "C" NOT NULL,
  detail  jsonb       NOT NULL DEFAULT '{}',
  rows    bigint      NOT NULL DEFAULT 0,
  reason  text        NOT NULL,
  CONSTRAINT outbox_operation_action_known CHECK (action IN ('pause', 'resume', 'replay', 'purge'))
);
COMMENT ON TABLE {{schema}}.outbox_operation IS 'outboxd: what operators did, who and why; rows counts what it came to';

-- Begins an operation of many transactions; its id is what they are done under.
-- Locks: none. Index: none.
CREATE FUNCTION {{schema}}.outbox_operation_begin(action text, detail jsonb, reason text, person text) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  INSERT INTO {{schema}}.outbox_operation (action, detail, reason, person)
  VALUES (outbox_operation_begin.action, outbox_operation_begin.detail, left(outbox_operation_begin.reason, 2000),
          left(outbox_operation_begin.person, 200))
  RETURNING id;
END;
REVOKE ALL ON FUNCTION {{schema}}.outbox_operation_begin(text, jsonb, text, text) FROM PUBLIC;

-- Adds what a step of it came to, and says why it is done: 'replayed by ROLE (PERSON): REASON'. An operation is its
-- beginner's alone. Locks: the operation's row. Index: primary key.
CREATE FUNCTION {{schema}}.outbox_operation_step(operation bigint, action text, rows bigint) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $outbox$
DECLARE
  note text;
BEGIN
  UPDATE {{schema}}.outbox_operation o SET rows = o.rows + outbox_operation_step.rows
  WHERE o.id = operation AND o.action = outbox_operation_step.action AND o.db_role = session_user
  RETURNING format('%s by %s (%s): %s', CASE o.action WHEN 'replay' THEN 'replayed' ELSE o.action END,
                   o.db_role, o.person, o.reason) INTO note;
  IF note IS NULL THEN
    RAISE EXCEPTION 'outbox_operation_step: % began no % of number %', session_user, outbox_operation_step.action, operation
      USING ERRCODE = 'invalid_parameter_value', HINT = 'outbox_operation_begin begins one';
  END IF;
  RETURN note;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_operation_step(bigint, text, bigint) FROM PUBLIC;

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
  ON CONFLICT (source, scope, topic, msg_key, partition)
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

-- Sends rows again that were sent: a batch becomes PENDING with its generation raised, so that a record of the earlier
-- sending can't vouch for this one; who and why stays in last_error. Null: any. Returns the ids; rows_max of them: there
-- may be more above the highest.
-- Locks: the count of releases, the rows (those that somebody else has are left out). Index: primary key; days outside of
-- the times are not read.
CREATE FUNCTION {{schema}}.outbox_replay(
  operation bigint, above bigint, ids bigint[], of_topic text, of_key text, since timestamptz, until timestamptz, rows_max int)
RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
DECLARE
  note CONSTANT text := {{schema}}.outbox_operation_step(operation, 'replay', 0);
  sent bigint;
BEGIN
  -- What a relay passed is PENDING again: it must not begin behind it.
  INSERT INTO {{schema}}.outbox_released AS r (source, times) VALUES ({{source}}, 1)
  ON CONFLICT ON CONSTRAINT outbox_released_once DO UPDATE SET times = r.times + 1;
  RETURN QUERY
    WITH picked AS (
      SELECT o.id, o.created_at FROM {{table}} o
      WHERE o.status = 'SENT' AND o.id > above AND (ids IS NULL OR o.id = ANY (ids))
        AND (of_topic IS NULL OR o.topic = of_topic) AND (of_key IS NULL OR o.msg_key = of_key)
        AND o.created_at >= coalesce(since, '-infinity') AND o.created_at < coalesce(until, 'infinity')
      ORDER BY o.id LIMIT rows_max FOR UPDATE SKIP LOCKED)
    UPDATE {{table}} o
    SET status = 'PENDING', generation = o.generation + 1, sent_at = NULL, kafka_partition = NULL, kafka_offset = NULL,
        last_error = left(concat_ws(' | ', note, o.last_error), 2000)
    FROM picked p WHERE o.id = p.id AND o.created_at = p.created_at AND o.status = 'SENT'
    RETURNING o.id;
  GET DIAGNOSTICS sent = ROW_COUNT;
  PERFORM {{schema}}.outbox_operation_step(operation, 'replay', sent);
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_replay(bigint, bigint, bigint[], text, text, timestamptz, timestamptz, int) FROM PUBLIC;

-- Deletes rows that are settled: SENT ones that were sent before `before`, DISCARDED and CANCELLED ones that were created
-- before it. Refuses every other status: what is not settled is not this function's to delete. Returns the ids.
-- Locks: the rows (those that somebody else has are left out). Index: primary key.
CREATE FUNCTION {{schema}}.outbox_purge(
  operation bigint, above bigint, of_status text, before timestamptz, of_topic text, rows_max int)
RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
DECLARE
  gone bigint;
BEGIN
  IF (of_status IN ('SENT', 'DISCARDED', 'CANCELLED') AND before <= clock_timestamp()) IS NOT TRUE THEN
    RAISE EXCEPTION 'outbox_purge: rows that are % stay, and so does what is not older than this moment', of_status
      USING ERRCODE = 'invalid_parameter_value',
            HINT = 'SENT, DISCARDED and CANCELLED rows can be purged; a DEAD one is first discarded';
  END IF;
  PERFORM {{schema}}.outbox_operation_step(operation, 'purge', 0);
  RETURN QUERY
    WITH picked AS (
      SELECT o.id, o.created_at FROM {{table}} o
      WHERE o.status = of_status AND o.id > above AND o.created_at < before AND (of_topic IS NULL OR o.topic = of_topic)
        AND (of_status <> 'SENT' OR coalesce(o.sent_at, o.created_at) < before)
      ORDER BY o.id LIMIT rows_max FOR UPDATE SKIP LOCKED)
    DELETE FROM {{table}} o USING picked p
    WHERE o.id = p.id AND o.created_at = p.created_at AND o.status = of_status
    RETURNING o.id;
  GET DIAGNOSTICS gone = ROW_COUNT;
  PERFORM {{schema}}.outbox_operation_step(operation, 'purge', gone);
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_purge(bigint, bigint, text, timestamptz, text, int) FROM PUBLIC;

-- Forgets that a consumer has processed messages whose ids carry no time; those are kept until somebody says so. Ids with a
-- time go by the consumer's horizon (inbox_maintain). A copy of one that comes later is fresh. Returns the ids.
-- Locks: the rows. Index: the partition's primary key.
CREATE FUNCTION {{schema}}.inbox_purge_timeless(
  operation bigint, of_consumer text, above uuid, before timestamptz, rows_max int)
RETURNS SETOF uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $outbox$
DECLARE
  gone bigint;
BEGIN
  PERFORM {{schema}}.outbox_operation_step(operation, 'purge', 0);
  RETURN QUERY
    WITH picked AS (
      SELECT p.msg_id FROM {{schema}}.processed_msgs_timeless p
      WHERE p.consumer = of_consumer AND p.msg_id > above AND p.processed_at < before AND p.state IN ('applied', 'discarded')
      ORDER BY p.msg_id LIMIT rows_max FOR UPDATE SKIP LOCKED)
    DELETE FROM {{schema}}.processed_msgs_timeless t USING picked p
    WHERE t.consumer = of_consumer AND t.msg_id = p.msg_id AND t.state IN ('applied', 'discarded')
    RETURNING t.msg_id;
  GET DIAGNOSTICS gone = ROW_COUNT;
  PERFORM {{schema}}.outbox_operation_step(operation, 'purge', gone);
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.inbox_purge_timeless(bigint, text, uuid, timestamptz, int) FROM PUBLIC;
