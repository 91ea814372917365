-- The producer's side: the outbox table, the trigger that wakes a sleeping relay, and what applications call.
--
-- Filled in by `outboxd migrate`: schema, table (quoted identifiers), table_literal, table_name_literal (unquoted) and asleep_literal
-- (the sequence's quoted name) as string literals, body_type, body_octets.
-- Locks: only on what it creates. Everything is made in the schema of the outbox table, so one schema holds one outbox.

-- ---------------------------------------------------------------------------------------------------------------------
-- What a column may hold, as domains and not as CHECKs of the table: a table's CHECK is parsed again by every INSERT
-- statement and evaluated again by every mark, which made them dearer than all else in the row (docs/protocol.md).
-- Clients see the type beneath. Topic and key are bytes to Kafka, so they compare as bytes.
CREATE DOMAIN {{schema}}.outbox_topic_name AS text COLLATE "C"
  CONSTRAINT outbox_topic_bounded CHECK (octet_length(VALUE) BETWEEN 1 AND 249);  -- Kafka's own bound
CREATE DOMAIN {{schema}}.outbox_key AS text COLLATE "C"
  CONSTRAINT outbox_key_bounded CHECK (octet_length(VALUE) <= 2048);  -- (topic, key, id) must fit an index entry
CREATE DOMAIN {{schema}}.outbox_headers AS jsonb
  CONSTRAINT outbox_headers_strings CHECK (
    VALUE = '{}' OR (jsonb_typeof(VALUE) = 'object'
                     AND NOT jsonb_path_exists(VALUE, 'strict $.* ? (@.type() != "string")')));
CREATE DOMAIN {{schema}}.outbox_status AS text COLLATE "C"
  CONSTRAINT outbox_status_known CHECK (VALUE IN ('PENDING', 'SENT', 'HELD', 'DEAD', 'CANCELLED', 'DISCARDED'));
CREATE DOMAIN {{schema}}.outbox_moment AS timestamptz
  -- Times are sent with four digits for the year. Neither 'infinity' nor '-infinity' is within.
  CONSTRAINT outbox_moment_in_years_1_to_9999 CHECK (VALUE >= '0001-01-01 00:00:00+00' AND VALUE < '10000-01-01 00:00:00+00');

-- The outbox.
CREATE TABLE {{table}} (
  -- Which transaction wrote the row. It stands before id on purpose: defaults are computed in the order of the columns, so a
  -- row's transaction has its number before the row draws its id, and a claim that has seen every transaction below a number
  -- end has seen every id that was drawn before (docs/guarantees.md, floors). PostgreSQL does not promise the order:
  -- tests/integration/sql_number_before_id_test.cpp does, on each major version that it runs on.
  xact            xid8        NOT NULL DEFAULT pg_current_xact_id(),
  -- ALWAYS, not BY DEFAULT: a list of VALUES (DEFAULT, ...) keeps the order above with ALWAYS alone, and drawn ids are refused.
  id              bigint      NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 1),
  msg_id          uuid        NOT NULL DEFAULT {{schema}}.outbox_uuid_v7(),
  topic           {{schema}}.outbox_topic_name NOT NULL,
  msg_key         {{schema}}.outbox_key,
  body            {{body_type}},
  body_bytes      int         GENERATED ALWAYS AS ({{body_octets}}) STORED,
  headers         {{schema}}.outbox_headers NOT NULL DEFAULT '{}',
  status          {{schema}}.outbox_status NOT NULL DEFAULT 'PENDING',
  available_at    {{schema}}.outbox_moment,
  created_at      {{schema}}.outbox_moment NOT NULL DEFAULT now(),
  shard           smallint    GENERATED ALWAYS AS (
                    (coalesce(hashtext(msg_key), uuid_hash(msg_id)) & 63)::smallint) STORED,
  generation      int         NOT NULL DEFAULT 0,
  attempts        int         NOT NULL DEFAULT 0,
  last_error      text,
  sent_at         timestamptz,
  kafka_partition int,
  kafka_offset    bigint,
  PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);

COMMENT ON TABLE {{table}} IS 'outboxd: INSERT (topic, body) in the business transaction; the relay sends each row to Kafka';

-- A row waiting to be sent is in exactly one of the first two: what is scheduled for tonight costs a poll nothing.
CREATE INDEX ON {{table}} (shard, id) WHERE status = 'PENDING' AND available_at IS NULL;
CREATE INDEX ON {{table}} (available_at, id) WHERE status = 'PENDING' AND available_at IS NOT NULL;
-- Release and operators' commands find what is held or dead by its key.
CREATE INDEX ON {{table}} (topic, msg_key, id) WHERE status IN ('HELD', 'DEAD');
-- Cancel finds a scheduled row by its message id, and again when it is asked twice.
CREATE INDEX ON {{table}} (msg_id) WHERE status IN ('PENDING', 'CANCELLED') AND available_at IS NOT NULL;
-- Tells whether anything of a day was sent lately without reading the day: one small entry per 128 pages, widened by marks.
-- The answer is asked for while inserts wait (outbox_drop_partition), where a day of a hundred million rows can't be read.
CREATE INDEX ON {{table}} USING brin (sent_at);

-- Half of a page is left free, so that a mark writes the row's new version next to the old one: half the pages touched and a
-- fraction of the WAL. Autovacuum goes by rows rather than by a share of a table of millions.
INSERT INTO {{schema}}.outbox_daily_table (table_name, storage) VALUES ({{table_name_literal}}, 'fillfactor = 50, '
  'autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, '
  'autovacuum_vacuum_cost_delay = 1, autovacuum_vacuum_cost_limit = 2000, '
  'autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 10000');
DO $outbox$
DECLARE
  parent CONSTANT regclass := {{table_literal}}::regclass;
BEGIN
  EXECUTE (SELECT format('CREATE TABLE %I.%I PARTITION OF %s DEFAULT WITH (%s)', n.nspname,
                         {{schema}}.outbox_partition_name(c.relname, 'default'), parent, d.storage)
           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           JOIN {{schema}}.outbox_daily_table d ON d.table_name = c.relname WHERE c.oid = parent);
END
$outbox$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Waking a sleeping relay. last_value is "asleep until" in milliseconds since 1970. A sequence is seen at once by every
-- snapshot and never bloats; an unlogged one costs its writer neither a transaction id nor a flush, and is back at
-- "awake" after a crash of the server.
CREATE UNLOGGED SEQUENCE {{schema}}.outbox_asleep AS bigint CACHE 1;

-- Whether a hint may be sent. The whole server has one queue of notifications, which any program fills that listens and stays
-- in a transaction; once it is full every transaction that sends one fails at its COMMIT. Half of it is left to others.
CREATE FUNCTION {{schema}}.outbox_hints_fit() RETURNS boolean
LANGUAGE sql VOLATILE
RETURN pg_notification_queue_usage() < 0.5;
REVOKE ALL ON FUNCTION {{schema}}.outbox_hints_fit() FROM PUBLIC;

-- A NOTIFY takes a lock of the whole database at commit: sent only while the relay says it sleeps. It is a hint, the
-- relay's poll is the truth: no payment fails for it. SECURITY DEFINER: the application may INSERT and nothing else.
CREATE FUNCTION {{schema}}.outbox_wake() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
BEGIN
  -- Half the cost of selecting last_value, which would be planned and run as a query; null where it was never set.
  IF pg_sequence_last_value({{asleep_literal}}::regclass) > date_part('epoch', clock_timestamp()) * 1000
     AND {{schema}}.outbox_hints_fit() THEN
    PERFORM pg_notify('outbox_msg', '');
  END IF;
  RETURN NULL;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_wake() FROM PUBLIC;

CREATE TRIGGER outbox_wake AFTER INSERT ON {{table}} FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.outbox_wake();

-- ---------------------------------------------------------------------------------------------------------------------
-- What applications call.

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
-- another five seconds, and this transaction holds the row's lock until it ends. Claims of due rows leave locked rows alone,
-- with what follows of their keys, so that a cancel whose transaction stays open past the due time still keeps its word, and
-- none that is rolled back changes the order. Anything else: 'may be sent'; then nothing is changed, and no lock is taken
-- unless the row came near its time while this waited for somebody else's. (No subtransaction to give that one back: a
-- transaction with many of them slows the whole server.) Several rows of one id are cancelled together or not at all.
-- Index: (msg_id) of scheduled rows. Locks: the rows of that id, where it can cancel them.
CREATE FUNCTION {{schema}}.outbox_cancel(msg_id uuid) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $outbox$
#variable_conflict use_column
DECLARE
  wanted CONSTANT uuid := outbox_cancel.msg_id;
  margin CONSTANT interval := '5 seconds';
  safe boolean;
BEGIN
  FOR look IN 1..2 LOOP
    IF look = 2 THEN
      PERFORM FROM {{table}} o
      WHERE o.msg_id = wanted AND o.status IN ('PENDING', 'CANCELLED') AND o.available_at IS NOT NULL ORDER BY o.id FOR UPDATE;
    END IF;
    SELECT bool_and(o.status = 'CANCELLED' OR o.available_at > clock_timestamp() + margin) INTO safe FROM {{table}} o
    WHERE o.msg_id = wanted AND o.status IN ('PENDING', 'CANCELLED') AND o.available_at IS NOT NULL;
    IF safe IS NOT TRUE THEN
      RETURN 'may be sent';
    END IF;
  END LOOP;
  UPDATE {{table}} o SET status = 'CANCELLED'
  WHERE o.msg_id = wanted AND o.status = 'PENDING' AND o.available_at IS NOT NULL;
  RETURN 'cancelled';
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_cancel(uuid) FROM PUBLIC;
