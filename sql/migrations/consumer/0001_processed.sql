-- The consumer's side: what was processed, what may be forgotten of it and when, and what guards against messages that a later one
-- overtook. Filled in: schema, schema_literal. Locks: only on what it creates.

-- One row per message and consumer, written in the transaction of the handler's own writes. A message's identity is
-- msg_id alone: id_time is computed from it and the CHECK holds that, so the key is unique in (consumer, msg_id), and
-- the table can still be partitioned, and shortened, by time.
CREATE TABLE {{schema}}.processed_msgs (
  consumer       text        COLLATE "C" NOT NULL,
  msg_id         uuid        NOT NULL,
  id_time        timestamptz NOT NULL,
  state          text        COLLATE "C" NOT NULL DEFAULT 'applied',
  payload_sha256 bytea       NOT NULL,
  topic          text        COLLATE "C" NOT NULL,
  partition      int         NOT NULL,
  "offset"       bigint      NOT NULL,
  processed_at   timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT processed_id_time_of_id CHECK (id_time = {{schema}}.outbox_id_time(msg_id)),
  CONSTRAINT processed_state_known CHECK (state IN ('applied', 'parked', 'dead', 'discarded')),
  CONSTRAINT processed_sha256_length CHECK (octet_length(payload_sha256) = 32),
  CONSTRAINT processed_consumer_bounded CHECK (octet_length(consumer) BETWEEN 1 AND 200),
  PRIMARY KEY (consumer, msg_id, id_time)
) PARTITION BY RANGE (id_time);

COMMENT ON TABLE {{schema}}.processed_msgs IS 'outbox: which message each consumer has processed; its primary key is the judge';

-- Ids without a time in them are kept until an explicit purge; what no daily partition takes is kept, too.
CREATE TABLE {{schema}}.processed_msgs_timeless PARTITION OF {{schema}}.processed_msgs
  FOR VALUES FROM (MINVALUE) TO ('1970-01-01 00:00:00+00');
CREATE TABLE {{schema}}.processed_msgs_default PARTITION OF {{schema}}.processed_msgs DEFAULT;
-- Rows that wait for an operator outlive their day; without this index finding them would scan it.
CREATE INDEX ON {{schema}}.processed_msgs (consumer, msg_id) WHERE state IN ('parked', 'dead');
INSERT INTO {{schema}}.outbox_daily_table (table_name, storage) VALUES ('processed_msgs',
  'autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 10000');

-- Each consumer's horizon, and the low-water mark below which partitions that held its rows were really dropped.
-- A consumer that is not in here, or whose horizon is null, remembers forever: no partition with a row of its is dropped.
CREATE TABLE {{schema}}.inbox_consumer (
  consumer      text        COLLATE "C" PRIMARY KEY,
  horizon       interval,
  low_water     timestamptz NOT NULL DEFAULT '-infinity',
  registered_at timestamptz NOT NULL DEFAULT now(),
  seen_at       timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT inbox_consumer_bounded CHECK (octet_length(consumer) BETWEEN 1 AND 200),
  CONSTRAINT inbox_consumer_horizon_two_days CHECK (horizon >= interval '2 days')
);
COMMENT ON COLUMN {{schema}}.inbox_consumer.low_water IS
  'ids whose time lies below it were forgotten: unless their row is still there, they are expired, never fresh';

-- The highest outbox-seq that was applied in a chain, which is a source's key within a topic: chain = sha256(source, line
-- feed, key). `previous` is what the last statement found there, since RETURNING knows only the new row.
CREATE TABLE {{schema}}.inbox_seq (
  consumer text   COLLATE "C" NOT NULL,
  topic    text   COLLATE "C" NOT NULL,
  chain    bytea  NOT NULL,
  seq      bigint NOT NULL,
  previous bigint,
  PRIMARY KEY (consumer, topic, chain)
) WITH (fillfactor = 70);

-- The business's own version numbers, one row for each entity a consumer advances.
CREATE TABLE {{schema}}.inbox_version (
  consumer text   COLLATE "C" NOT NULL,
  entity   text   COLLATE "C" NOT NULL,
  version  bigint NOT NULL,
  CONSTRAINT inbox_version_entity_bounded CHECK (octet_length(entity) BETWEEN 1 AND 1000),
  PRIMARY KEY (consumer, entity)
) WITH (fillfactor = 70);

-- Says how long a consumer must remember; null: forever. Called by every instance at its start; the last one's word holds.
-- Locks: the consumer's row. Index: primary key.
CREATE FUNCTION {{schema}}.inbox_register(consumer text, horizon interval) RETURNS void
LANGUAGE sql VOLATILE
BEGIN ATOMIC
  INSERT INTO {{schema}}.inbox_consumer AS c (consumer, horizon) VALUES (inbox_register.consumer, inbox_register.horizon)
  ON CONFLICT (consumer) DO UPDATE SET horizon = excluded.horizon, seen_at = now();
END;

-- The consumers that have rows in a partition, by one probe each. Index: the partition's primary key. Locks: none.
CREATE FUNCTION {{schema}}.inbox_consumers_in(part regclass) RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $outbox$
BEGIN
  RETURN QUERY EXECUTE format(
    'WITH RECURSIVE found(name) AS ('
    '  (SELECT p.consumer FROM %1$s p ORDER BY p.consumer LIMIT 1)'
    '  UNION ALL'
    '  SELECT (SELECT p.consumer FROM %1$s p WHERE p.consumer > f.name ORDER BY p.consumer LIMIT 1)'
    '  FROM found f WHERE f.name IS NOT NULL)'
    'SELECT name FROM found WHERE name IS NOT NULL', part);
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.inbox_consumers_in(regclass) FROM PUBLIC;

-- Whether every consumer with rows in a partition may forget what lies below `high`. Locks: none.
CREATE FUNCTION {{schema}}.inbox_forgettable(part regclass, high timestamptz) RETURNS boolean
LANGUAGE sql STABLE
RETURN high <= now() - interval '2 days' AND NOT EXISTS (
  SELECT FROM {{schema}}.inbox_consumers_in(part) AS present(name)
  LEFT JOIN {{schema}}.inbox_consumer c ON c.consumer = present.name COLLATE "C"
  WHERE c.horizon IS NULL OR high > now() - c.horizon);
REVOKE ALL ON FUNCTION {{schema}}.inbox_forgettable(regclass, timestamptz) FROM PUBLIC;

-- Drops one partition and raises the low-water mark of those who had rows in it, in one transaction; what waits for an
-- operator moves to the DEFAULT partition first. It looks again once it has the lock: before, a row can slip in.
-- A consumer inserts first and reads its mark in a later statement: it either holds this up, or sees the new mark.
-- Locks: ACCESS EXCLUSIVE on processed_msgs, waited for 100 ms at most since every message waits behind that; then on its DEFAULT
-- partition and the partition, at once or not at all: nobody is waited for while others wait. 55P03: call again later.
CREATE FUNCTION {{schema}}.inbox_forget(part regclass, high timestamptz) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' SET enable_seqscan = off
AS $outbox$
DECLARE
  parent CONSTANT regclass := to_regclass(format('%I.processed_msgs', {{schema_literal}}));
BEGIN
  PERFORM set_config('synchronous_commit', 'local', true);  -- the messages must not wait for a standby that is away
  LOCK TABLE ONLY {{schema}}.processed_msgs IN ACCESS EXCLUSIVE MODE;
  LOCK TABLE {{schema}}.processed_msgs_default IN ACCESS EXCLUSIVE MODE NOWAIT;
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', part);
  IF NOT {{schema}}.inbox_forgettable(part, high) THEN
    RETURN false;
  END IF;
  UPDATE {{schema}}.inbox_consumer c SET low_water = high
  WHERE c.low_water < high AND c.consumer IN (SELECT {{schema}}.inbox_consumers_in(part));
  EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', parent, part);
  EXECUTE format('INSERT INTO %s SELECT * FROM %s WHERE state IN (''parked'', ''dead'')', parent, part);
  EXECUTE format('DROP TABLE %s', part);
  RETURN true;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.inbox_forget(regclass, timestamptz) FROM PUBLIC;

-- Takes out of the DEFAULT partition what lies below one consumer's horizon, 10,000 rows a call, and raises its mark.
-- Index: the DEFAULT partition's primary key. Locks: the rows.
CREATE FUNCTION {{schema}}.inbox_purge(name text, below timestamptz) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $outbox$
DECLARE
  gone bigint;
BEGIN
  DELETE FROM {{schema}}.processed_msgs_default d
  WHERE d.ctid = ANY (ARRAY(SELECT p.ctid FROM {{schema}}.processed_msgs_default p
                            WHERE p.consumer = name AND p.id_time < below AND p.state IN ('applied', 'discarded')
                            LIMIT 10000))
    AND d.state IN ('applied', 'discarded');
  GET DIAGNOSTICS gone = ROW_COUNT;
  IF gone > 0 THEN
    UPDATE {{schema}}.inbox_consumer c SET low_water = below WHERE c.consumer = name AND c.low_water < below;
  END IF;
  RETURN gone;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.inbox_purge(text, timestamptz) FROM PUBLIC;

-- The upkeep of processed_msgs: makes partitions ahead, drops those that every consumer with rows in them may forget
-- (32 a call), and takes the same out of the DEFAULT partition. Safe to repeat and to call from many sessions: one works,
-- the others answer at once with busy. A call that made a partition did nothing else: call again at once, so that no lock is
-- waited for while one is held. `waiting` counts what a lock held up: call again later. Ids without a time are never
-- forgotten here.
-- Locks: an advisory lock of the transaction; those of outbox_ensure_partitions and inbox_forget.
CREATE FUNCTION {{schema}}.inbox_maintain(
  days_ahead int DEFAULT 7,
  OUT busy boolean, OUT made int, OUT dropped int, OUT purged bigint, OUT waiting int)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET timezone = 'UTC'
AS $outbox$
DECLARE
  parent CONSTANT regclass := to_regclass(format('%I.processed_msgs', {{schema_literal}}));
  part record;
  c record;
BEGIN
  made := 0; dropped := 0; purged := 0; waiting := 0;
  busy := NOT pg_try_advisory_xact_lock(hashtextextended('inbox_maintain', hashtext({{schema_literal}})));
  IF busy THEN
    RETURN;
  END IF;
  BEGIN
    made := greatest({{schema}}.outbox_ensure_partitions(days_ahead), 0);
  EXCEPTION WHEN lock_not_available THEN
    waiting := waiting + 1;
  END;
  IF made > 0 THEN
    RETURN;
  END IF;
  FOR c IN SELECT r.consumer, date_trunc('day', now() - r.horizon) AS below
           FROM {{schema}}.inbox_consumer r WHERE r.horizon IS NOT NULL ORDER BY r.consumer LOOP
    purged := purged + {{schema}}.inbox_purge(c.consumer, c.below);
  END LOOP;
  FOR part IN
    SELECT i.inhrelid::regclass AS name,
           (regexp_match(pg_get_expr(p.relpartbound, p.oid), 'TO \(''([^'']+)''\)'))[1]::timestamptz AS high
    FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhrelid
    WHERE i.inhparent = parent
      AND pg_get_expr(p.relpartbound, p.oid) LIKE 'FOR VALUES FROM (''%'
    ORDER BY high
  LOOP
    EXIT WHEN dropped >= 32 OR part.high > now();
    CONTINUE WHEN NOT {{schema}}.inbox_forgettable(part.name, part.high);
    BEGIN
      dropped := dropped + {{schema}}.inbox_forget(part.name, part.high)::int;
    EXCEPTION WHEN lock_not_available THEN
      waiting := waiting + 1;
      EXIT;
    END;
  END LOOP;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.inbox_maintain(int) FROM PUBLIC;

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
