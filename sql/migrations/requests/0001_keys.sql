-- Idempotent requests: what is remembered of each, and for how long. Filled in: schema. Locks: only on what it creates.

-- For how long keys are remembered. A class has at most twelve live periods, each a partition of idempotency_keys, and
-- each as long as an eighth of its retention.
CREATE TABLE {{schema}}.idempotency_class (
  class            text     COLLATE "C" PRIMARY KEY,
  retention        interval NOT NULL,
  client_retry_max interval NOT NULL,
  replay_max       interval NOT NULL,
  CONSTRAINT idempotency_class_named CHECK (class ~ '^[a-z0-9_-]{1,63}$'),
  CONSTRAINT idempotency_class_durations CHECK (client_retry_max >= interval '0' AND replay_max >= interval '0'
                                                AND retention > interval '0'),
  CONSTRAINT idempotency_class_outlasts_replay CHECK (retention >= client_retry_max + replay_max)
);

-- An operation is what stands before the first colon of a scope: pay of pay:merchant-7.
CREATE TABLE {{schema}}.idempotency_operation (
  operation        text     COLLATE "C" PRIMARY KEY,
  class            text     COLLATE "C" NOT NULL REFERENCES {{schema}}.idempotency_class,
  processing_limit interval NOT NULL,
  keys             text     COLLATE "C" NOT NULL DEFAULT 'any',
  CONSTRAINT idempotency_operation_named CHECK (operation ~ '^[a-z0-9_.-]{1,63}$'),
  CONSTRAINT idempotency_operation_limit CHECK (processing_limit BETWEEN interval '1 millisecond' AND interval '7 days'),
  CONSTRAINT idempotency_operation_keys CHECK (keys IN ('any', 'issued'))
);

-- Periods of a class follow one another by number. New keys go into the first that is not closed; the next stands ready.
CREATE TABLE {{schema}}.idempotency_period (
  period    bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  class     text        COLLATE "C" NOT NULL REFERENCES {{schema}}.idempotency_class,
  opened_at timestamptz,
  closed_at timestamptz,
  CONSTRAINT idempotency_period_opened_first CHECK (closed_at IS NULL OR opened_at IS NOT NULL)
);
COMMENT ON COLUMN {{schema}}.idempotency_period.closed_at IS
  'since then no key can be inserted into its partition; what is in it may still be finished';

-- One row for each request. A key is in one period only, though the unique index is each partition's own: see request_begin.
--   PROCESSING  somebody works on it: `owner`, under `attempt`. deadline: by when it must be finished, of the intent shape
--   SUCCEEDED   done, FAILED: refused for good; both are answered with the stored response for as long as they are remembered
--   RETRYABLE   not done, and provably without a call that left: the next one who asks executes it
CREATE TABLE {{schema}}.idempotency_keys (
  period           bigint      NOT NULL,
  scope            text        COLLATE "C" NOT NULL,
  key              text        COLLATE "C" NOT NULL,
  status           text        COLLATE "C" NOT NULL,
  request_hash     bytea       NOT NULL,
  hash_version     smallint    NOT NULL,
  attempt          int         NOT NULL DEFAULT 1,
  owner            uuid        NOT NULL,
  operation_id     uuid        NOT NULL DEFAULT gen_random_uuid(),
  created_at       timestamptz NOT NULL,
  started_at       timestamptz NOT NULL,
  deadline         timestamptz,
  finished_at      timestamptz,
  response_status  int,
  response_headers jsonb,
  response_body    bytea,
  reason           text,
  PRIMARY KEY (scope, key, period),
  CONSTRAINT idempotency_scope_bounded CHECK (octet_length(scope) BETWEEN 1 AND 255),
  CONSTRAINT idempotency_key_bounded CHECK (octet_length(key) BETWEEN 1 AND 255),
  CONSTRAINT idempotency_status_known CHECK (status IN ('PROCESSING', 'SUCCEEDED', 'FAILED', 'RETRYABLE')),
  CONSTRAINT idempotency_hash_length CHECK (octet_length(request_hash) = 32),
  CONSTRAINT idempotency_deadline_of_processing CHECK (deadline IS NULL OR status = 'PROCESSING'),
  CONSTRAINT idempotency_answer_of_finished CHECK ((response_status IS NOT NULL) = (status IN ('SUCCEEDED', 'FAILED'))),
  CONSTRAINT idempotency_headers_list CHECK (response_headers IS NULL OR jsonb_typeof(response_headers) = 'array')
) PARTITION BY LIST (period);
-- Who sweeps leftovers finds them here. A request of the transaction shape never is: its one update stays within the page.
CREATE INDEX ON {{schema}}.idempotency_keys (deadline) WHERE deadline IS NOT NULL;

COMMENT ON TABLE {{schema}}.idempotency_keys IS
  'outbox: each request and what became of it; written by the functions request_… alone';
COMMENT ON COLUMN {{schema}}.idempotency_keys.operation_id IS
  'the number under which every attempt calls a third party';
COMMENT ON COLUMN {{schema}}.idempotency_keys.response_headers IS 'array of [name, value], in their order';

-- Refuses keys that come into a closed period: they are begun in the next one. See request_maintain.
CREATE FUNCTION {{schema}}.idempotency_period_is_closed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $outbox$
BEGIN
  RETURN NULL;
END
$outbox$;

-- Makes the next period of a class, made apart and then attached, so that no request waits for it.
-- Locks: SHARE UPDATE EXCLUSIVE on idempotency_keys.
CREATE FUNCTION {{schema}}.idempotency_make_period(class text) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms'
AS $outbox$
#variable_conflict use_column
DECLARE
  number bigint;
  part text;
BEGIN
  number := nextval(pg_get_serial_sequence('{{schema}}.idempotency_period', 'period'));
  part := format('{{schema}}.%I', 'idempotency_keys_' || number);
  EXECUTE format('CREATE TABLE %s (LIKE {{schema}}.idempotency_keys INCLUDING ALL, '
                 'CONSTRAINT idempotency_of_its_period CHECK (period = %s)) '
                 'WITH (autovacuum_vacuum_insert_scale_factor = 0.1, fillfactor = 90)', part, number);
  EXECUTE format('ALTER TABLE {{schema}}.idempotency_keys ATTACH PARTITION %s FOR VALUES IN (%s)', part, number);
  INSERT INTO {{schema}}.idempotency_period (period, class, opened_at)
  OVERRIDING SYSTEM VALUE
  VALUES (number, idempotency_make_period.class,
          CASE WHEN EXISTS (SELECT FROM {{schema}}.idempotency_period p
                            WHERE p.class = idempotency_make_period.class AND p.closed_at IS NULL)
               THEN NULL ELSE clock_timestamp() END);
  RETURN number;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.idempotency_make_period(text) FROM PUBLIC;

-- Declares for how long the requests of a class are remembered: at least as long as a client may go on retrying, and then
-- whatever lies behind it may be replayed. Safe to repeat; the last one's word holds. 23514: retention is too short.
-- Locks: the class's row; SHARE UPDATE EXCLUSIVE on idempotency_keys when it is new.
CREATE FUNCTION {{schema}}.request_declare_class(class text, retention interval, client_retry_max interval, replay_max interval)
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
#variable_conflict use_column
BEGIN
  INSERT INTO {{schema}}.idempotency_class AS c (class, retention, client_retry_max, replay_max)
  VALUES (request_declare_class.class, request_declare_class.retention, request_declare_class.client_retry_max,
          request_declare_class.replay_max)
  ON CONFLICT (class) DO UPDATE
  SET retention = excluded.retention, client_retry_max = excluded.client_retry_max, replay_max = excluded.replay_max
  WHERE (c.retention, c.client_retry_max, c.replay_max)
        IS DISTINCT FROM (excluded.retention, excluded.client_retry_max, excluded.replay_max);
  IF FOUND AND NOT EXISTS (SELECT FROM {{schema}}.idempotency_period p WHERE p.class = request_declare_class.class) THEN
    PERFORM {{schema}}.idempotency_make_period(request_declare_class.class);
    PERFORM {{schema}}.idempotency_make_period(request_declare_class.class);
  END IF;
END
$outbox$;

-- Declares an operation. processing_limit: after that long, who asks for a request still PROCESSING gets the right to find
-- out what became of it. keys: issued: only those of request_issue_key. Safe to repeat; the last one's word holds, but an
-- operation stays in its class (RQ005), since another's periods do not know its keys. Locks: the operation's row.
CREATE FUNCTION {{schema}}.request_declare(operation text, class text, processing_limit interval DEFAULT '1 minute',
                                           keys text DEFAULT 'any')
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
#variable_conflict use_column
DECLARE
  before text;
BEGIN
  INSERT INTO {{schema}}.idempotency_operation AS o (operation, class, processing_limit, keys)
  VALUES (request_declare.operation, request_declare.class, request_declare.processing_limit, request_declare.keys)
  ON CONFLICT (operation) DO NOTHING;
  SELECT o.class INTO before FROM {{schema}}.idempotency_operation o WHERE o.operation = request_declare.operation;
  IF before IS DISTINCT FROM request_declare.class THEN
    RAISE EXCEPTION 'request_declare: % is of class %, and another class would not know its keys', request_declare.operation, before
      USING ERRCODE = 'RQ005', HINT = 'Give the operation another name, or change the retention of its class.';
  END IF;
  UPDATE {{schema}}.idempotency_operation o
  SET processing_limit = request_declare.processing_limit, keys = request_declare.keys
  WHERE o.operation = request_declare.operation
    AND (o.processing_limit, o.keys) IS DISTINCT FROM (request_declare.processing_limit, request_declare.keys);
END
$outbox$;

-- A key for callers that can't make one. Its time is inside, so that it is known when it is too old to be remembered.
CREATE FUNCTION {{schema}}.request_issue_key() RETURNS text
LANGUAGE sql VOLATILE
RETURN {{schema}}.outbox_uuid_v7()::text;
