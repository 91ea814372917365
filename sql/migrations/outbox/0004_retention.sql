-- What is sent again, and what may go: rows that are settled, and days whose rows all are and were sent before the replay window.
-- Filled in: schema, table, table_literal. Locks: none beyond what it creates.

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

-- Where a partition's range ends; null: it is the DEFAULT one, or no partition.
CREATE FUNCTION {{schema}}.outbox_partition_end(part regclass) RETURNS timestamptz
LANGUAGE sql STABLE
RETURN (SELECT substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO [(]''([^'']+)''[)]')::timestamptz
        FROM pg_class c WHERE c.oid = part);

-- Why a partition stays: 'unsent' (a row is PENDING, HELD or DEAD), 'recent' (a row was sent after `since`), or 'nothing'.
-- Indexes: the partial ones of the first three states, the BRIN of sent_at. Locks: none.
CREATE FUNCTION {{schema}}.outbox_partition_kept_by(part regclass, since timestamptz) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = on SET jit = off
AS $outbox$
DECLARE
  unsent boolean;
  recent boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT FROM %1$s WHERE status = ''PENDING'' AND available_at IS NULL) '
                 'OR EXISTS (SELECT FROM %1$s WHERE status = ''PENDING'' AND available_at IS NOT NULL) '
                 'OR EXISTS (SELECT FROM %1$s WHERE status IN (''HELD'', ''DEAD''))', part) INTO unsent;
  IF unsent THEN
    RETURN 'unsent';
  END IF;
  EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE sent_at > $1)', part) INTO recent USING since;
  RETURN CASE WHEN recent THEN 'recent' ELSE 'nothing' END;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_partition_kept_by(regclass, timestamptz) FROM PUBLIC;

-- Drops one day of the outbox, if it is older than replay_window and nothing keeps it: 'dropped', or why not: 'unsent',
-- 'recent'. 55P03: a lock could not be had in time; nothing happened, call again later. Call it as a transaction of its own.
-- The lock comes first and the check after it, in a later statement: what was committed while the lock was waited for is
-- seen, and nothing can come after. The look before it is for free: it spares the inserts the lock where it would be in vain.
-- Locks: ACCESS EXCLUSIVE on the table, waited for 100 ms at most, since every insert waits behind that; then on its DEFAULT
-- partition and the partition, at once or not at all: nobody is waited for while others wait. Held for a few index look-ups
-- and the drop.
CREATE FUNCTION {{schema}}.outbox_drop_partition(part regclass, replay_window interval) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
AS $outbox$
DECLARE
  parent CONSTANT regclass := {{table_literal}}::regclass;
  since CONSTANT timestamptz := clock_timestamp() - replay_window;
  fallback regclass;
  kept_by text;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'outbox_drop_partition: under % the check could not see what was committed before the lock was had',
      current_setting('transaction_isolation') USING ERRCODE = 'invalid_transaction_state',
      HINT = 'call it in a transaction that is READ COMMITTED';
  END IF;
  SELECT nullif(p.partdefid, 0)::regclass INTO fallback
  FROM pg_partitioned_table p JOIN pg_inherits i ON i.inhparent = p.partrelid
  WHERE p.partrelid = parent AND i.inhrelid = part;
  IF NOT FOUND OR part = fallback OR (replay_window >= '0') IS NOT TRUE THEN
    RAISE EXCEPTION 'outbox_drop_partition: % is no day of %, or the replay window % is negative', part, parent, replay_window
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF ({{schema}}.outbox_partition_end(part) <= since) IS NOT TRUE THEN
    RETURN 'recent';
  END IF;
  kept_by := {{schema}}.outbox_partition_kept_by(part, since);
  IF kept_by <> 'nothing' THEN
    RETURN kept_by;
  END IF;

  -- Inserts wait until the commit, which must not wait for a standby that is away.
  PERFORM set_config('synchronous_commit', 'local', true);
  EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', parent);
  IF fallback IS NOT NULL THEN
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', fallback);
  END IF;
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', part);
  kept_by := {{schema}}.outbox_partition_kept_by(part, since);
  IF kept_by <> 'nothing' THEN
    RETURN kept_by;
  END IF;
  EXECUTE format('DROP TABLE %s', part);
  RETURN 'dropped';
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_drop_partition(regclass, interval) FROM PUBLIC;
