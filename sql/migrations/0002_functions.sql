-- What applications, the relay and operators call. Plain names and types are in docs/protocol.md.
-- Locks: none beyond CREATE FUNCTION. Filled in: schema, table, body_type, source.

-- Inserts one message and returns its id. Runs with the caller's rights: INSERT on the table is enough.
CREATE FUNCTION {{schema}}.outbox_publish(
  topic text, key text, body {{body_type}}, headers jsonb DEFAULT '{}', available_at timestamptz DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql VOLATILE
AS $outbox$
DECLARE
  new_id CONSTANT uuid := {{schema}}.outbox_uuid_v7();
BEGIN
  INSERT INTO {{table}} (msg_id, topic, msg_key, body, headers, available_at)
  VALUES (new_id, topic, key, body, headers, available_at);
  RETURN new_id;
END
$outbox$;

-- Cancels a scheduled message. 'cancelled' is answered only where no claim can have taken the row: it is not due for
-- another five seconds, and this transaction holds the row's lock until it ends. Claims of due rows skip locked rows, so
-- that a cancel whose transaction stays open past the due time still keeps its word. Anything else: 'may be sent'.
-- Index: (msg_id) of scheduled rows. Locks: the rows of that id.
CREATE FUNCTION {{schema}}.outbox_cancel(msg_id uuid) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $outbox$
#variable_conflict use_column
DECLARE
  wanted CONSTANT uuid := outbox_cancel.msg_id;
  margin CONSTANT interval := '5 seconds';
  found_rows int := 0;
  safe_rows int := 0;
  m record;
BEGIN
  FOR m IN SELECT o.id, o.created_at, o.status, o.available_at FROM {{table}} o
           WHERE o.msg_id = wanted AND o.status IN ('PENDING', 'CANCELLED') AND o.available_at IS NOT NULL
           ORDER BY o.id FOR UPDATE LOOP
    found_rows := found_rows + 1;
    IF m.status = 'CANCELLED' THEN
      safe_rows := safe_rows + 1;
    ELSIF m.available_at > clock_timestamp() + margin THEN
      UPDATE {{table}} o SET status = 'CANCELLED' WHERE o.id = m.id AND o.created_at = m.created_at;
      safe_rows := safe_rows + 1;
    END IF;
  END LOOP;
  RETURN CASE WHEN found_rows > 0 AND safe_rows = found_rows THEN 'cancelled' ELSE 'may be sent' END;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_cancel(uuid) FROM PUBLIC;

-- Takes or renews every lane of a source, or says who has them: always one row a lane, the caller's where owner is the
-- caller. Judged by the database's clock, read after the lock is held.
-- A live owner other than the caller keeps everything, whatever count of lanes the caller asks for. Otherwise the same
-- count renews (same epoch) or takes over (epoch + 1); another count is a new generation whose epochs lie above every
-- earlier one. Owners' names must differ between processes, and between two lives of one process.
-- Index: primary key. Locks: lane 0 of the source first (the mutex), then its other lanes.
CREATE FUNCTION {{schema}}.outbox_lease_take(
  of_source text, claimant text, lane_count int, ttl interval, rate real DEFAULT 0)
RETURNS TABLE (lane smallint, epoch bigint, owner text, remaining_ms bigint)
LANGUAGE plpgsql VOLATILE
AS $outbox$
#variable_conflict use_column
DECLARE
  at timestamptz;
  old_lanes int;
  old_generation int;
  top_epoch bigint;
BEGIN
  IF (lane_count BETWEEN 1 AND 64 AND claimant <> '' AND ttl > '0') IS NOT TRUE THEN
    RAISE EXCEPTION 'outbox_lease_take: owner %, lanes %, ttl %: an owner, 1 to 64 lanes and a positive ttl are needed',
      claimant, lane_count, ttl USING ERRCODE = 'invalid_parameter_value';
  END IF;

  INSERT INTO {{schema}}.outbox_lease AS l (source, lane, lanes, generation, owner, epoch, lease_until, renewed_at)
  VALUES (of_source, 0, 1, 0, NULL, 0, '-infinity', now()) ON CONFLICT DO NOTHING;
  PERFORM 1 FROM {{schema}}.outbox_lease l WHERE l.source = of_source AND l.lane = 0 FOR UPDATE;
  at := clock_timestamp();

  IF NOT EXISTS (SELECT 1 FROM {{schema}}.outbox_lease l
                 WHERE l.source = of_source AND l.owner <> claimant AND l.lease_until > at) THEN
    SELECT max(l.lanes), max(l.generation), max(l.epoch) INTO old_lanes, old_generation, top_epoch
    FROM {{schema}}.outbox_lease l WHERE l.source = of_source;

    IF old_generation > 0 AND old_lanes = lane_count THEN
      UPDATE {{schema}}.outbox_lease l
      SET owner = claimant, epoch = l.epoch + (l.owner IS DISTINCT FROM claimant)::int,
          lease_until = at + ttl, renewed_at = at, sent_per_s = rate
      WHERE l.source = of_source;
    ELSE
      DELETE FROM {{schema}}.outbox_lease l WHERE l.source = of_source AND l.lane >= lane_count;
      INSERT INTO {{schema}}.outbox_lease AS l
        (source, lane, lanes, generation, owner, epoch, lease_until, renewed_at, sent_per_s)
      SELECT of_source, n, lane_count, old_generation + 1, claimant, top_epoch + 1, at + ttl, at, rate
      FROM generate_series(0, lane_count - 1) n
      ON CONFLICT (source, lane) DO UPDATE
      SET lanes = excluded.lanes, generation = excluded.generation, owner = excluded.owner, epoch = excluded.epoch,
          lease_until = excluded.lease_until, renewed_at = excluded.renewed_at, sent_per_s = excluded.sent_per_s;
    END IF;
  END IF;

  RETURN QUERY
    SELECT l.lane, l.epoch, l.owner,
           greatest(0, floor(date_part('epoch', l.lease_until - at) * 1000))::bigint
    FROM {{schema}}.outbox_lease l
    WHERE l.source = of_source AND l.owner IS NOT NULL ORDER BY l.lane;
END
$outbox$;

-- Ends a hold: its HELD rows are PENDING again and the hold is gone, in the caller's transaction, so no later row of the
-- scope can be claimed before the earlier ones. Rows that another hold covers too are put on hold again by the next
-- claim. Returns how many rows it let go. Partitions are known to the relay alone: that scope lets go the whole topic.
-- The hold is deleted (locked) first and the rows are looked for in a later statement: whoever sets rows HELD locks the
-- hold FOR SHARE before, so none is left behind.
-- Index: (topic, msg_key, id) of held rows. Locks: the hold, then the rows.
CREATE FUNCTION {{schema}}.outbox_release(
  source text, scope text, topic text, key text DEFAULT '', partition int DEFAULT -1)
RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $outbox$
DECLARE
  let_go bigint;
BEGIN
  IF outbox_release.scope NOT IN ('key', 'topic', 'partition') OR outbox_release.source <> {{source}} THEN
    RAISE EXCEPTION 'outbox_release: no scope % of source % here; scopes are key, topic and partition, the source is %',
      outbox_release.scope, outbox_release.source, {{source}} USING ERRCODE = 'invalid_parameter_value';
  END IF;
  DELETE FROM {{schema}}.outbox_hold h
  WHERE h.source = outbox_release.source AND h.scope = outbox_release.scope AND h.topic = outbox_release.topic
    AND h.msg_key = CASE outbox_release.scope WHEN 'key' THEN outbox_release.key ELSE '' END
    AND h.partition = CASE outbox_release.scope WHEN 'partition' THEN outbox_release.partition ELSE -1 END;
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
REVOKE ALL ON FUNCTION {{schema}}.outbox_release(text, text, text, text, int) FROM PUBLIC;

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
