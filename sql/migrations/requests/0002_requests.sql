-- The life of a request, for programs in any language. docs/requests.md is their contract: statements, verdicts, SQLSTATEs.
-- All of them work with READ COMMITTED, with the rights of the tables' owner, and wait a second at most. Filled in: schema.
-- Locks: none beyond CREATE FUNCTION.

-- Asks for the right to do what a request wants, and says what to do:
--   execute      do it: attempt, owner, operation_id and period are for the functions below
--   replay       it is done, or refused for good: answer with the stored response
--   in_progress  another is at it: ask again after retry_after
--   mismatch     the key was used by another request: refuse; known_hash is that one's
--   recover      it was begun and not finished in time, and is the caller's now under a new attempt: COMMIT, then find out
--                what became of it, by operation_id; never do it again blindly
--   expired      an issued key that is too old to be remembered; malformed: the key is none: reason says why
-- owner: names this call: who lost the answer to a COMMIT asks again with it, and gets the same attempt, if it is theirs.
-- former_hashes: the same request's hash under hash_version 1, 2, 3 …, for what was begun before the recipe changed.
-- shape: intent: to be committed before a call leaves. transaction: request_succeed comes before this transaction's COMMIT.
-- Errors: 0A000 not READ COMMITTED; 22023 a wrong argument; RQ003 the operation is not declared; RQ004 no former hash.
--
-- Why one index judges though each partition has its own: a key is inserted only into the first period that is not closed.
-- A period is closed by a trigger, whose lock waits for every insert under way: from then on its keys are known for good.
-- So once the list of periods is read, all before the first open one are final; they are read, and then the insert into
-- the open one either meets its unique index, or is refused since it was closed meanwhile, and all begins again.
-- Locks: the key's row. Index: primary keys of the live periods.
CREATE FUNCTION {{schema}}.request_begin(
  scope text, key text, request_hash bytea, owner uuid DEFAULT gen_random_uuid(), hash_version int DEFAULT 1,
  former_hashes bytea[] DEFAULT '{}', shape text DEFAULT 'intent',
  OUT verdict text, OUT attempt int, OUT operation_id uuid, OUT period bigint, OUT retry_after interval,
  OUT response_status int, OUT response_headers jsonb, OUT response_body bytea, OUT known_hash bytea, OUT reason text,
  OUT finished_at timestamptz)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' SET plan_cache_mode = force_generic_plan
AS $outbox$
#variable_conflict use_column
DECLARE
  op record;
  known record;
  this_hash bytea;
  this_time timestamptz;
  ends timestamptz;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'request_begin: the transaction is %, and must be read committed', current_setting('transaction_isolation')
      USING ERRCODE = 'feature_not_supported';
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF (octet_length(request_begin.scope) BETWEEN 1 AND 255 AND octet_length(request_begin.request_hash) = 32
      AND request_begin.owner IS NOT NULL AND request_begin.hash_version BETWEEN 1 AND 32767
      AND request_begin.shape IN ('intent', 'transaction')) IS NOT TRUE THEN
    RAISE EXCEPTION 'request_begin: scope has 1 to 255 bytes, request_hash 32, owner is a uuid, hash_version is 1 to 32767, shape is intent or transaction'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF (octet_length(request_begin.key) BETWEEN 1 AND 255) IS NOT TRUE THEN
    verdict := 'malformed'; reason := 'a key has 1 to 255 bytes';
    RETURN;
  END IF;

  FOR tries IN 1..50 LOOP
    SELECT o.processing_limit, o.keys, c.retention, p.open, p.live INTO op
    FROM {{schema}}.idempotency_operation o
    JOIN {{schema}}.idempotency_class c USING (class)
    CROSS JOIN LATERAL (SELECT min(p.period) FILTER (WHERE p.closed_at IS NULL) AS open, array_agg(p.period) AS live
                        FROM {{schema}}.idempotency_period p WHERE p.class = o.class) p
    WHERE o.operation = split_part(request_begin.scope, ':', 1);
    IF op.open IS NULL THEN
      RAISE EXCEPTION 'request_begin: the operation of scope % is not declared', request_begin.scope
        USING ERRCODE = 'RQ003', HINT = 'Call request_declare when the service starts.';
    END IF;

    SELECT k.* INTO known FROM {{schema}}.idempotency_keys k
    WHERE k.scope = request_begin.scope AND k.key = request_begin.key AND k.period = ANY (op.live);
    this_time := clock_timestamp();
    IF NOT FOUND THEN
      IF op.keys = 'issued' THEN
        IF request_begin.key !~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN
          verdict := 'malformed'; reason := 'it is no issued key';
          RETURN;
        END IF;
        ends := {{schema}}.outbox_id_time(request_begin.key::uuid) + op.retention;
        IF ends = '-infinity' OR ends > this_time + op.retention + interval '5 minutes' THEN
          verdict := 'malformed'; reason := 'it is no issued key';
          RETURN;
        ELSIF ends <= this_time THEN
          verdict := 'expired'; reason := 'it was issued longer ago than requests are remembered';
          RETURN;
        END IF;
      END IF;
      BEGIN
        INSERT INTO {{schema}}.idempotency_keys
          (period, scope, key, status, request_hash, hash_version, owner, created_at, started_at, deadline)
        VALUES (op.open, request_begin.scope, request_begin.key, 'PROCESSING', request_begin.request_hash,
                request_begin.hash_version, request_begin.owner, this_time, this_time,
                CASE request_begin.shape WHEN 'intent' THEN this_time + op.processing_limit END)
        ON CONFLICT DO NOTHING
        RETURNING 'execute', 1, idempotency_keys.operation_id, idempotency_keys.period
        INTO verdict, attempt, operation_id, period;
      EXCEPTION WHEN lock_not_available THEN
        verdict := 'in_progress'; retry_after := '1 second';
        RETURN;
      END;
      IF verdict IS NOT NULL THEN
        RETURN;
      END IF;
      CONTINUE;
    END IF;

    this_hash := CASE known.hash_version WHEN request_begin.hash_version THEN request_begin.request_hash
                                         ELSE request_begin.former_hashes[known.hash_version] END;
    IF this_hash IS NULL THEN
      RAISE EXCEPTION 'request_begin: this request was begun with hash version %, and former_hashes has none of that version', known.hash_version
        USING ERRCODE = 'RQ004', HINT = 'Go on computing former versions of the hash for as long as requests are remembered.';
    END IF;
    attempt := known.attempt; operation_id := known.operation_id; period := known.period;
    IF this_hash <> known.request_hash THEN
      verdict := 'mismatch'; known_hash := known.request_hash; reason := 'the key was used by another request';
      RETURN;
    ELSIF known.status IN ('SUCCEEDED', 'FAILED') THEN
      verdict := 'replay'; response_status := known.response_status; response_headers := known.response_headers;
      response_body := known.response_body; finished_at := known.finished_at;
      RETURN;
    ELSIF known.status = 'PROCESSING' THEN
      ends := coalesce(known.deadline, known.started_at + op.processing_limit);
      IF this_time < ends THEN
        verdict := CASE known.owner WHEN request_begin.owner THEN 'execute' ELSE 'in_progress' END;
        retry_after := least(ends - this_time, greatest(interval '1 second', this_time - known.started_at));
        RETURN;
      END IF;
    END IF;
    BEGIN
      UPDATE {{schema}}.idempotency_keys k
      SET status = 'PROCESSING', attempt = k.attempt + 1, owner = request_begin.owner, started_at = this_time,
          deadline = CASE request_begin.shape WHEN 'intent' THEN this_time + op.processing_limit END, reason = NULL
      WHERE k.scope = request_begin.scope AND k.key = request_begin.key AND k.period = known.period
        AND k.status = known.status AND k.attempt = known.attempt AND k.owner = known.owner
      RETURNING CASE known.status WHEN 'RETRYABLE' THEN 'execute' ELSE 'recover' END, k.attempt INTO verdict, attempt;
    EXCEPTION WHEN lock_not_available THEN
      verdict := 'in_progress'; retry_after := '1 second';
      RETURN;
    END;
    IF verdict IS NOT NULL THEN
      RETURN;
    END IF;
  END LOOP;
  RAISE EXCEPTION 'request_begin: % of % changed fifty times meanwhile: roll back and begin again', request_begin.key, request_begin.scope
    USING ERRCODE = 'serialization_failure';
END
$outbox$;

-- What request_succeed, request_fail and request_retry do. RQ001: another attempt has it: whatever this transaction did for
-- it must be rolled back. RQ002: this very attempt has finished it already. RQ006: there is no such request.
-- Locks: the key's row. Index: primary keys of the live periods.
CREATE FUNCTION {{schema}}.request_finish(
  scope text, key text, attempt int, owner uuid, outcome text, response_status int, response_headers jsonb,
  response_body bytea, reason text, period bigint)
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' SET plan_cache_mode = force_generic_plan
AS $outbox$
#variable_conflict use_column
DECLARE
  at_period bigint := request_finish.period;
  known record;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'request_finish: the transaction is %, and must be read committed', current_setting('transaction_isolation')
      USING ERRCODE = 'feature_not_supported';
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF at_period IS NULL THEN
    SELECT k.period INTO at_period FROM {{schema}}.idempotency_keys k
    WHERE k.scope = request_finish.scope AND k.key = request_finish.key
      AND k.period = ANY (ARRAY(SELECT p.period FROM {{schema}}.idempotency_period p
                                JOIN {{schema}}.idempotency_operation o USING (class)
                                WHERE o.operation = split_part(request_finish.scope, ':', 1)));
  END IF;
  UPDATE {{schema}}.idempotency_keys k
  SET status = request_finish.outcome, deadline = NULL, finished_at = clock_timestamp(),
      response_status = request_finish.response_status, response_headers = request_finish.response_headers,
      response_body = request_finish.response_body, reason = request_finish.reason
  WHERE k.period = at_period AND k.scope = request_finish.scope AND k.key = request_finish.key
    AND k.status = 'PROCESSING' AND k.attempt = request_finish.attempt AND k.owner = request_finish.owner;
  IF FOUND THEN
    RETURN;
  END IF;
  SELECT k.status, k.attempt, k.owner INTO known FROM {{schema}}.idempotency_keys k
  WHERE k.period = at_period AND k.scope = request_finish.scope AND k.key = request_finish.key;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no request % of %', request_finish.key, request_finish.scope USING ERRCODE = 'RQ006';
  ELSIF known.attempt = request_finish.attempt AND known.owner = request_finish.owner THEN
    RAISE EXCEPTION 'attempt % of request % of % is finished already: %', known.attempt, request_finish.key, request_finish.scope, known.status
      USING ERRCODE = 'RQ002';
  END IF;
  RAISE EXCEPTION 'attempt % of request % of % was overtaken: attempt % is %', request_finish.attempt, request_finish.key, request_finish.scope, known.attempt, known.status
    USING ERRCODE = 'RQ001', HINT = 'Roll back; the answer is the other attempt''s to give.';
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.request_finish(text, text, int, uuid, text, int, jsonb, bytea, text, bigint) FROM PUBLIC;

-- It is done, and this is the answer, for good. period: what request_begin said, which saves a look-up.
-- Errors: as request_finish. Locks: the key's row. Index: primary key.
CREATE FUNCTION {{schema}}.request_succeed(
  scope text, key text, attempt int, owner uuid, response_status int, response_headers jsonb DEFAULT NULL,
  response_body bytea DEFAULT NULL, period bigint DEFAULT NULL)
RETURNS void LANGUAGE sql VOLATILE
BEGIN ATOMIC
  SELECT {{schema}}.request_finish(scope, key, attempt, owner, 'SUCCEEDED', response_status, response_headers, response_body,
                                   NULL, period);
END;

-- It is refused for good, such as for want of funds, and this is the answer. Errors: as request_finish.
-- Locks: the key's row. Index: primary key.
CREATE FUNCTION {{schema}}.request_fail(
  scope text, key text, attempt int, owner uuid, response_status int, response_headers jsonb DEFAULT NULL,
  response_body bytea DEFAULT NULL, period bigint DEFAULT NULL)
RETURNS void LANGUAGE sql VOLATILE
BEGIN ATOMIC
  SELECT {{schema}}.request_finish(scope, key, attempt, owner, 'FAILED', response_status, response_headers, response_body,
                                   NULL, period);
END;

-- It is not done, and the next one who asks may do it: only where no call left, or the third party has said that it knows
-- nothing of operation_id and never will. After a time-out, leave it PROCESSING. Errors: as request_finish.
-- Locks: the key's row. Index: primary key.
CREATE FUNCTION {{schema}}.request_retry(
  scope text, key text, attempt int, owner uuid, reason text, period bigint DEFAULT NULL)
RETURNS void LANGUAGE sql VOLATILE
BEGIN ATOMIC
  SELECT {{schema}}.request_finish(scope, key, attempt, owner, 'RETRYABLE', NULL, NULL, NULL, left(reason, 2000), period);
END;

-- What is known of a request, without side effects. state: none, processing, succeeded, failed, retryable. `none` is not
-- the last word while a transaction may be open that begins it: only request_begin waits for that one.
-- Locks: none. Index: primary keys of the live periods.
CREATE FUNCTION {{schema}}.request_status(
  scope text, key text, OUT state text, OUT attempt int, OUT retry_after interval, OUT response_status int,
  OUT response_headers jsonb, OUT response_body bytea, OUT finished_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
#variable_conflict use_column
BEGIN
  SELECT lower(k.status), k.attempt,
         CASE k.status WHEN 'PROCESSING' THEN
           least(greatest(coalesce(k.deadline, k.started_at + o.processing_limit) - clock_timestamp(), interval '1 second'),
                 greatest(interval '1 second', clock_timestamp() - k.started_at)) END,
         k.response_status, k.response_headers, k.response_body, k.finished_at
  INTO state, attempt, retry_after, response_status, response_headers, response_body, finished_at
  FROM {{schema}}.idempotency_operation o
  JOIN {{schema}}.idempotency_period p USING (class)
  JOIN {{schema}}.idempotency_keys k USING (period)
  WHERE o.operation = split_part(request_status.scope, ':', 1)
    AND k.scope = request_status.scope AND k.key = request_status.key;
  state := coalesce(state, 'none');
END
$outbox$;

-- Takes over requests that were begun and not finished in time, those first that have waited longest, under a new attempt:
-- COMMIT, then find out what became of each, by its operation_id, and finish it; never do it again blindly. Those whose
-- owner is just finishing them are passed over. operation: of these alone.
-- Locks: the rows, until the COMMIT. Index: deadline of each live period.
CREATE FUNCTION {{schema}}.request_recover(owner uuid, rows_max int DEFAULT 100, operation text DEFAULT NULL)
RETURNS TABLE (scope text, key text, attempt int, operation_id uuid, period bigint, created_at timestamptz)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $outbox$
#variable_conflict use_column
DECLARE
  this_time CONSTANT timestamptz := clock_timestamp();
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'request_recover: the transaction is %, and must be read committed', current_setting('transaction_isolation')
      USING ERRCODE = 'feature_not_supported';
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  RETURN QUERY
    WITH due AS MATERIALIZED (
      SELECT k.period, k.scope, k.key, k.attempt, o.processing_limit
      FROM {{schema}}.idempotency_keys k
      JOIN {{schema}}.idempotency_operation o ON o.operation = split_part(k.scope, ':', 1)
      WHERE k.deadline <= this_time
        AND (request_recover.operation IS NULL OR o.operation = request_recover.operation)
      ORDER BY k.deadline LIMIT request_recover.rows_max FOR UPDATE OF k SKIP LOCKED)
    UPDATE {{schema}}.idempotency_keys k
    SET attempt = k.attempt + 1, owner = request_recover.owner, started_at = this_time,
        deadline = this_time + due.processing_limit
    FROM due
    WHERE k.period = due.period AND k.scope = due.scope AND k.key = due.key
    RETURNING k.scope, k.key, k.attempt, k.operation_id, k.period, k.created_at;
END
$outbox$;
