-- Counts how often rows became PENDING that a relay had seen and passed.
-- Filled in: schema, table, source. Locks: none beyond CREATE.

-- A relay may leave out of a claim what lies below an id that it has worked up to (relay/core/claim/claim_floors.hpp). Rows that
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
-- claim. Returns how many rows it let go. Partitions are known to the relay alone: that scope lets go the whole topic.
-- The hold is deleted (locked) first and the rows are looked for in a later statement: whoever sets rows HELD locks the
-- hold FOR SHARE before, so none is left behind.
-- Index: (topic, msg_key, id) of held rows. Locks: the count, the hold, then the rows.
CREATE OR REPLACE FUNCTION {{schema}}.outbox_release(
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
  INSERT INTO {{schema}}.outbox_released AS r (source, times) VALUES ({{source}}, 1)
  ON CONFLICT ON CONSTRAINT outbox_released_once DO UPDATE SET times = r.times + 1;
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

-- Takes one row out of DEAD; when it was the last dead row of its key, the key's hold ends with it. The key's hold is
-- locked first, so that of two at once one sees what the other did. False: there is no such dead row.
CREATE OR REPLACE FUNCTION {{schema}}.outbox_dead_end(row_id bigint, new_status text, note text) RETURNS boolean
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
