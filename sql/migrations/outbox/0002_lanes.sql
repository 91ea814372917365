-- What relays keep beside the outbox: lanes that any number of instances share, the partition counts of topics, and the ledgers
-- of exactly-once delivery. Filled in: schema. Locks: none beyond what it creates.

-- Who works which lane, until when by the database's clock. Every take-over raises the lane's epoch; a mark checks it.
-- All lanes of a source carry the same count and the same generation; lane 0 always exists and is locked first.
CREATE TABLE {{schema}}.outbox_lease (
  source      text        COLLATE "C" NOT NULL,
  lane        smallint    NOT NULL,
  lanes       smallint    NOT NULL,
  generation  int         NOT NULL,
  owner       text        COLLATE "C",
  epoch       bigint      NOT NULL,
  lease_until timestamptz NOT NULL,
  renewed_at  timestamptz NOT NULL,
  sent_per_s  real        NOT NULL DEFAULT 0,
  CONSTRAINT outbox_lease_lane_in_lanes CHECK (lane >= 0 AND lane < lanes AND lanes <= 64),
  PRIMARY KEY (source, lane)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000);

-- Who is there, with lanes or without: what the fair share of each is counted from. An instance is alive until alive_until
-- by the database's clock, leaves by deleting its row, and is deleted by the others once its time is up.
CREATE TABLE {{schema}}.outbox_instance (
  source      text        COLLATE "C" NOT NULL,
  instance    text        COLLATE "C" NOT NULL,
  lanes       smallint    NOT NULL,
  since       timestamptz NOT NULL,
  renewed_at  timestamptz NOT NULL,
  alive_until timestamptz NOT NULL,
  delivery    text        COLLATE "C" NOT NULL,
  stopped     text        NOT NULL DEFAULT '',
  CONSTRAINT outbox_instance_lanes_bounded CHECK (lanes BETWEEN 1 AND 64),
  PRIMARY KEY (source, instance)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000);

COMMENT ON COLUMN {{schema}}.outbox_instance.lanes IS 'how many lanes its configuration asks for; of the youngest instance: how many there shall be';
COMMENT ON COLUMN {{schema}}.outbox_instance.delivery IS 'at_least_once or exactly_once';
COMMENT ON COLUMN {{schema}}.outbox_instance.stopped IS 'why lanes of it cannot send; empty: none stands still';

-- Announces the caller, renews its lanes, and gives it free ones up to its share. One row a lane, whoever has it, and in
-- each the count of lanes, the caller's share, the count of instances, and, where the caller must wait for others that
-- deliver otherwise, how those do and one of their names. Judged by the database's clock, read after the lock is held.
-- Delivery: the one in force is that of the oldest instance whose lease of a lane runs; where nobody has a lane, that of the
-- oldest instance. Only instances that deliver so have a share; the others wait, and count for nothing, until nobody has a
-- lane any more. So two ways of delivery are never at work at once, and another one begins when the last lane is given back.
-- Share: lanes / instances, and one more for the oldest where it does not come out even; so each lane has its place with
-- one instance, and a newcomer moves as few as possible. Who has more than its share gives the surplus back
-- (outbox_lanes_give) once nothing of it is in flight; nothing is taken from anybody whose lease runs.
-- Another count of lanes: that of the youngest instance is the one to be. Until nobody has a lane any more every share is 0;
-- then the count changes in one step, a new generation whose epochs lie above every earlier one, also before anybody has
-- its lanes: a late mark names a lane of the old count.
-- An epoch rises whenever a lane comes to an owner; an owner that comes late, with nobody in between, keeps its epoch.
-- Instances' names must differ between processes, and between two lives of one process.
-- Index: primary keys. Locks: lane 0 of the source first (the mutex), then its instances and lanes.
CREATE FUNCTION {{schema}}.outbox_lanes_keep(
  of_source text, claimant text, lane_count int, ttl interval, rate real DEFAULT 0,
  delivers text DEFAULT 'at_least_once', stands_still text DEFAULT '')
RETURNS TABLE (lane smallint, epoch bigint, owner text, remaining_ms bigint, lanes smallint, share int, instances int,
               delivery_in_force text, in_force_by text)
LANGUAGE plpgsql VOLATILE
AS $outbox$
#variable_conflict use_column
DECLARE
  at timestamptz;
  joined boolean;
  switched boolean := false;
  in_force text;
  by_instance text;
  wanted smallint;
  present smallint;
  present_generation int;
  alive int;
  rank int;
  my_share int := 0;
  held int;
BEGIN
  IF (lane_count BETWEEN 1 AND 64 AND claimant <> '' AND ttl > '0') IS NOT TRUE THEN
    RAISE EXCEPTION 'outbox_lanes_keep: instance %, lanes %, ttl %: a name, 1 to 64 lanes and a positive ttl are needed',
      claimant, lane_count, ttl USING ERRCODE = 'invalid_parameter_value';
  END IF;

  INSERT INTO {{schema}}.outbox_lease AS l (source, lane, lanes, generation, owner, epoch, lease_until, renewed_at)
  VALUES (of_source, 0, 1, 0, NULL, 0, '-infinity', now()) ON CONFLICT DO NOTHING;
  PERFORM 1 FROM {{schema}}.outbox_lease l WHERE l.source = of_source AND l.lane = 0 FOR UPDATE;
  at := clock_timestamp();

  -- The clock was set back: whoever had its time has it from now on, and not until a moment that may be days away.
  UPDATE {{schema}}.outbox_lease l SET lease_until = at + (l.lease_until - l.renewed_at), renewed_at = at
  WHERE l.source = of_source AND l.owner IS NOT NULL AND l.renewed_at > at;
  UPDATE {{schema}}.outbox_instance i SET alive_until = at + (i.alive_until - i.renewed_at), renewed_at = at
  WHERE i.source = of_source AND i.renewed_at > at;

  DELETE FROM {{schema}}.outbox_instance i WHERE i.source = of_source AND i.alive_until <= at;
  INSERT INTO {{schema}}.outbox_instance AS i (source, instance, lanes, since, renewed_at, alive_until, delivery, stopped)
  VALUES (of_source, claimant, lane_count, at, at, at + ttl, delivers, coalesce(stands_still, ''))
  ON CONFLICT (source, instance) DO UPDATE
  SET lanes = excluded.lanes, renewed_at = excluded.renewed_at, alive_until = excluded.alive_until,
      delivery = excluded.delivery, stopped = excluded.stopped
  RETURNING i.since = at INTO joined;

  SELECT i.delivery, i.instance INTO in_force, by_instance FROM {{schema}}.outbox_instance i
  WHERE i.source = of_source
  ORDER BY EXISTS (SELECT 1 FROM {{schema}}.outbox_lease l
                   WHERE l.source = of_source AND l.owner = i.instance AND l.lease_until > at) DESC, i.since, i.instance
  LIMIT 1;

  SELECT i.lanes INTO wanted FROM {{schema}}.outbox_instance i
  WHERE i.source = of_source AND i.delivery = in_force ORDER BY i.since DESC, i.instance DESC LIMIT 1;
  SELECT l.lanes, l.generation INTO present, present_generation FROM {{schema}}.outbox_lease l
  WHERE l.source = of_source AND l.lane = 0;
  IF (present <> wanted OR present_generation = 0) AND NOT EXISTS (
       SELECT 1 FROM {{schema}}.outbox_lease l WHERE l.source = of_source AND l.owner IS NOT NULL AND l.lease_until > at) THEN
    INSERT INTO {{schema}}.outbox_lease AS l (source, lane, lanes, generation, owner, epoch, lease_until, renewed_at)
    SELECT of_source, n, wanted, present_generation + 1, NULL,
           (SELECT max(m.epoch) + (present_generation > 0)::int FROM {{schema}}.outbox_lease m WHERE m.source = of_source), '-infinity', at
    FROM generate_series(0, wanted - 1) n
    ON CONFLICT (source, lane) DO UPDATE
    SET lanes = excluded.lanes, generation = excluded.generation, owner = NULL, epoch = excluded.epoch,
        lease_until = excluded.lease_until, renewed_at = excluded.renewed_at, sent_per_s = 0;
    DELETE FROM {{schema}}.outbox_lease l WHERE l.source = of_source AND l.lane >= wanted;
    present := wanted;
    switched := true;
  END IF;

  SELECT count(*), count(*) FILTER (WHERE (i.since, i.instance) <= (me.since, me.instance)) INTO alive, rank
  FROM {{schema}}.outbox_instance i, {{schema}}.outbox_instance me
  WHERE i.source = of_source AND i.delivery = in_force
    AND me.source = of_source AND me.instance = claimant;
  IF present = wanted AND delivers = in_force THEN
    my_share := present / alive + (rank <= present % alive)::int;
  END IF;

  UPDATE {{schema}}.outbox_lease l SET lease_until = at + ttl, renewed_at = at, sent_per_s = rate
  WHERE l.source = of_source AND l.owner = claimant;
  GET DIAGNOSTICS held = ROW_COUNT;
  IF held < my_share THEN
    UPDATE {{schema}}.outbox_lease l
    SET owner = claimant, epoch = l.epoch + 1, lease_until = at + ttl, renewed_at = at, sent_per_s = rate
    WHERE l.source = of_source AND l.lane IN (
      SELECT f.lane FROM {{schema}}.outbox_lease f
      WHERE f.source = of_source AND (f.owner IS NULL OR f.lease_until <= at) ORDER BY f.lane LIMIT my_share - held);
  END IF;

  -- A hint to the others that their shares may have changed; without it they see it at their next renewal.
  IF joined OR switched THEN
    PERFORM pg_notify('outbox_lane', '');
  END IF;
  RETURN QUERY
    SELECT l.lane, l.epoch, l.owner,
           CASE WHEN l.owner IS NULL THEN 0  -- lease_until may be -infinity there
                ELSE greatest(0, floor(date_part('epoch', l.lease_until - at) * 1000))::bigint END,
           present, my_share, (SELECT count(*)::int FROM {{schema}}.outbox_instance i WHERE i.source = of_source),
           CASE WHEN delivers <> in_force THEN in_force END, CASE WHEN delivers <> in_force THEN by_instance END
    FROM {{schema}}.outbox_lease l WHERE l.source = of_source ORDER BY l.lane;
END
$outbox$;

-- Gives lanes back, each under the epoch that the caller had it: a call that comes late, after the lane came to the caller
-- again, changes nothing. Who leaves gives back whatever it has, and is no instance any more. Returns how many lanes are
-- free by it. Epochs stay; the next owner raises them.
-- Index: primary keys. Locks: lane 0 of the source first (the mutex), then the lanes and the instance.
CREATE FUNCTION {{schema}}.outbox_lanes_give(
  of_source text, claimant text, given smallint[], epochs bigint[], leaves boolean)
RETURNS int
LANGUAGE plpgsql VOLATILE
AS $outbox$
#variable_conflict use_column
DECLARE
  freed int;
BEGIN
  PERFORM 1 FROM {{schema}}.outbox_lease l WHERE l.source = of_source AND l.lane = 0 FOR UPDATE;
  UPDATE {{schema}}.outbox_lease l SET owner = NULL, lease_until = clock_timestamp(), renewed_at = clock_timestamp()
  WHERE l.source = of_source AND l.owner = claimant
    AND (leaves OR (l.lane, l.epoch) IN (SELECT g.lane, g.epoch FROM unnest(given, epochs) AS g (lane, epoch)));
  GET DIAGNOSTICS freed = ROW_COUNT;
  IF leaves THEN
    DELETE FROM {{schema}}.outbox_instance i WHERE i.source = of_source AND i.instance = claimant;
  END IF;
  IF freed > 0 OR leaves THEN
    PERFORM pg_notify('outbox_lane', '');
  END IF;
  RETURN freed;
END
$outbox$;

-- The partition count that keys of a topic are spread over, pinned so that it never changes under messages on the way.
CREATE TABLE {{schema}}.outbox_topic (
  source     text        COLLATE "C" NOT NULL,
  topic      text        COLLATE "C" NOT NULL,
  partitions int         NOT NULL,
  pinned_at  timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT outbox_topic_has_partitions CHECK (partitions > 0),
  PRIMARY KEY (source, topic)
);

-- Exactly-once delivery: which generations of lanes have written a ledger in Kafka, so that after the count of lanes changed
-- each lane of the old count is fenced and what it committed last is marked, before anything is claimed under the new one.
-- One row a generation of lanes that is, or may be, in use; an old one is deleted once it is settled. `ledger` is the same in
-- all rows of a source: the table's own name for itself in Kafka, so that two tables never take each other's ledger for theirs.
CREATE TABLE {{schema}}.outbox_ledger (
  source     text        COLLATE "C" NOT NULL,
  generation int         NOT NULL,
  lanes      smallint    NOT NULL,
  ledger     uuid        NOT NULL,
  since      timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT outbox_ledger_lanes_bounded CHECK (lanes BETWEEN 1 AND 64),
  PRIMARY KEY (source, generation)
);
