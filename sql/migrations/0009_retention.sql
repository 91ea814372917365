-- What may go: days whose rows are all settled and were sent before the replay window.
-- Filled in: schema, table, table_literal.
-- Locks: SHARE on the outbox table while its index is built; else only on what it creates.

-- Tells whether anything of a day was sent lately without reading the day: one small entry per 128 pages, widened by marks.
-- The answer is asked for while inserts wait (outbox_drop_partition), where a day of a hundred million rows can't be read.
CREATE INDEX ON {{table}} USING brin (sent_at);

-- A business transaction never waits long behind the maker of partitions, not even one that reads the DEFAULT partition.
ALTER FUNCTION {{schema}}.outbox_make_partition(regclass, regclass, date, text) SET lock_timeout = '500ms';

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
-- Locks: ACCESS EXCLUSIVE on the table, its DEFAULT partition and the partition, each waited for 100 ms at most, since every
-- insert waits behind that; held for a few index look-ups and the drop.
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
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', fallback);
  END IF;
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', part);
  kept_by := {{schema}}.outbox_partition_kept_by(part, since);
  IF kept_by <> 'nothing' THEN
    RETURN kept_by;
  END IF;
  EXECUTE format('DROP TABLE %s', part);
  RETURN 'dropped';
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_drop_partition(regclass, interval) FROM PUBLIC;
