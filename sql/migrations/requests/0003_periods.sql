-- How requests are forgotten: whole periods at a time. Filled in: schema, schema_literal. Locks: none beyond CREATE FUNCTION.

-- One step of the upkeep, with its locks at its very end: call it until it answers `done`, each time in a transaction of
-- its own, and again after a while. Of several at once, one works. The steps:
--   made     the period that comes next stands ready
--   closed   a period has lasted for an eighth of the retention: its keys are final, new ones go into the next
--   dropped  nobody may ask for its keys any more: its partition is gone
--   waiting  transactions that use idempotency_keys have not let it through within 50 ms: call again later
--   held     it may be dropped, but rows in it are PROCESSING or RETRYABLE: a person must look (request_purge)
--   full     twelve periods live already, so the open one goes on
--   busy, done
-- Both the clock and the number of periods that were closed since must agree that a period is over, so that one step of
-- the clock, however long, forgets nothing that must be remembered.
-- Locks: SHARE ROW EXCLUSIVE on the partition that is closed, ACCESS EXCLUSIVE on idempotency_keys where one is dropped:
-- for 50 ms at most, waiting included.
CREATE FUNCTION {{schema}}.request_maintain(OUT step text, OUT class text, OUT period bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms'
AS $outbox$
#variable_conflict use_column
DECLARE
  live_max CONSTANT int := 12;
  newer_closed_min CONSTANT int := 9;
  this_time CONSTANT timestamptz := clock_timestamp();
  c record;
  unfinished boolean;
  stuck text;
  stuck_class text;
  stuck_period bigint;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended({{schema_literal}} || '.request_maintain', 0)) THEN
    step := 'busy';
    RETURN;
  END IF;
  FOR c IN
    SELECT r.class, r.retention, live.*
    FROM {{schema}}.idempotency_class r
    CROSS JOIN LATERAL (
      SELECT count(*) AS live, count(*) FILTER (WHERE p.closed_at IS NULL) AS open,
             count(*) FILTER (WHERE p.closed_at IS NOT NULL) AS closed,
             min(p.period) FILTER (WHERE p.closed_at IS NULL) AS current,
             min(p.period) FILTER (WHERE p.closed_at IS NOT NULL) AS oldest
      FROM {{schema}}.idempotency_period p WHERE p.class = r.class) live
    ORDER BY r.class
  LOOP
    class := c.class;
    BEGIN
      IF c.closed > newer_closed_min AND EXISTS (SELECT FROM {{schema}}.idempotency_period p
                                                 WHERE p.period = c.oldest AND p.closed_at + c.retention <= this_time) THEN
        period := c.oldest;
        EXECUTE format('SELECT EXISTS (SELECT FROM {{schema}}.%I WHERE status IN (''PROCESSING'', ''RETRYABLE''))',
                       'idempotency_keys_' || c.oldest) INTO unfinished;
        IF unfinished THEN
          stuck := 'held'; stuck_class := c.class; stuck_period := c.oldest;
        ELSE
          EXECUTE format('DROP TABLE {{schema}}.%I', 'idempotency_keys_' || c.oldest);
          DELETE FROM {{schema}}.idempotency_period p WHERE p.period = c.oldest;
          step := 'dropped';
          RETURN;
        END IF;
      END IF;
      IF c.open < 2 THEN
        IF c.live < live_max THEN
          period := {{schema}}.idempotency_make_period(c.class);
          step := 'made';
          RETURN;
        ELSIF stuck IS NULL THEN
          stuck := 'full'; stuck_class := c.class; stuck_period := c.current;
        END IF;
      ELSIF EXISTS (SELECT FROM {{schema}}.idempotency_period p
                    WHERE p.period = c.current AND p.opened_at + c.retention / 8 <= this_time) THEN
        period := c.current;
        UPDATE {{schema}}.idempotency_period p SET closed_at = this_time WHERE p.period = c.current;
        UPDATE {{schema}}.idempotency_period p SET opened_at = this_time
        WHERE p.period = (SELECT min(n.period) FROM {{schema}}.idempotency_period n
                          WHERE n.class = c.class AND n.period > c.current);
        EXECUTE format('CREATE TRIGGER idempotency_closed BEFORE INSERT ON {{schema}}.%I '
                       'FOR EACH ROW EXECUTE FUNCTION {{schema}}.idempotency_period_is_closed()',
                       'idempotency_keys_' || c.current);
        step := 'closed';
        RETURN;
      END IF;
    EXCEPTION WHEN lock_not_available THEN
      stuck := 'waiting'; stuck_class := c.class; stuck_period := period;
    END;
  END LOOP;
  step := coalesce(stuck, 'done'); class := stuck_class; period := stuck_period;
END
$outbox$;

-- For an operator, of a request that nobody will ask for any more, so that its period can go: RETRYABLE becomes FAILED for
-- good, answered with 410. PROCESSING is never touched: what became of it must be found out first. Answers how many.
-- older_than: created before. Locks: the rows. Index: none.
CREATE FUNCTION {{schema}}.request_purge(older_than timestamptz, why text, operation text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $outbox$
#variable_conflict use_column
DECLARE
  count bigint;
BEGIN
  UPDATE {{schema}}.idempotency_keys k
  SET status = 'FAILED', response_status = 410, finished_at = clock_timestamp(), reason = left('purged: ' || request_purge.why, 2000)
  WHERE k.status = 'RETRYABLE' AND k.created_at < request_purge.older_than
    AND (request_purge.operation IS NULL OR split_part(k.scope, ':', 1) = request_purge.operation);
  GET DIAGNOSTICS count = ROW_COUNT;
  RETURN count;
END
$outbox$;

-- For an operator: a PROCESSING request is not waited for any longer: who asks next, or sweeps, gets the right to find out
-- what became of it. False: it is not PROCESSING. Locks: the row. Index: primary keys.
CREATE FUNCTION {{schema}}.request_expedite(scope text, key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $outbox$
#variable_conflict use_column
BEGIN
  UPDATE {{schema}}.idempotency_keys k SET deadline = clock_timestamp()
  WHERE k.scope = request_expedite.scope AND k.key = request_expedite.key AND k.status = 'PROCESSING';
  RETURN FOUND;
END
$outbox$;

-- What a dashboard may see: counts and ages by operation, never a key. Reads the index of what is unfinished, no request
-- that is done. Locks: none.
CREATE VIEW {{schema}}.request_overview AS
SELECT o.operation, o.class, o.processing_limit,
       (SELECT count(*) FROM {{schema}}.idempotency_keys k
        WHERE k.deadline IS NOT NULL AND split_part(k.scope, ':', 1) = o.operation) AS processing,
       (SELECT clock_timestamp() - min(k.started_at) FROM {{schema}}.idempotency_keys k
        WHERE k.deadline IS NOT NULL AND split_part(k.scope, ':', 1) = o.operation) AS oldest_processing
FROM {{schema}}.idempotency_operation o;

-- They work with the owner's rights: only for whom the grants name.
REVOKE ALL ON FUNCTION
  {{schema}}.request_declare_class(text, interval, interval, interval), {{schema}}.request_declare(text, text, interval, text),
  {{schema}}.request_begin(text, text, bytea, uuid, int, bytea[], text),
  {{schema}}.request_finish(text, text, int, uuid, text, int, jsonb, bytea, text, bigint),
  {{schema}}.request_status(text, text), {{schema}}.request_recover(uuid, int, text), {{schema}}.request_maintain(),
  {{schema}}.request_purge(timestamptz, text, text), {{schema}}.request_expedite(text, text) FROM PUBLIC;
