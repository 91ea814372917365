-- First in every transaction of `outboxd migrate`: one migrator at a time per schema, and a place to record what was applied.
-- Filled in: schema, schema_literal. Parameters: none. Index: none.
-- Locks: an advisory lock of the transaction; whoever comes second waits at most 30 s, then gets 55P03. Every later one is asked
-- for 100 ms at most, since every statement that comes later waits behind it.
SET LOCAL search_path = pg_catalog;
SET LOCAL lock_timeout = '30s';
SELECT pg_advisory_xact_lock(hashtextextended('outboxd migrate', hashtext({{schema_literal}})));
SET LOCAL lock_timeout = '100ms';
DO $outbox$
BEGIN
  IF current_setting('server_version_num')::int < 150000 THEN
    RAISE EXCEPTION 'PostgreSQL 15 or later is needed, this is %', current_setting('server_version')
      USING ERRCODE = 'feature_not_supported';
  END IF;
  IF current_setting('server_encoding') <> 'UTF8' THEN
    RAISE EXCEPTION 'the encoding of database % is %: it must be UTF8, which is what Kafka gets', current_database(),
      current_setting('server_encoding') USING ERRCODE = 'feature_not_supported',
      HINT = 'make a database of that encoding (createdb -T template0 -E UTF8) and move what is in this one there';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = {{schema_literal}}) THEN
    CREATE SCHEMA {{schema}};
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                 WHERE n.nspname = {{schema_literal}} AND c.relname = 'outbox_migration') THEN
    CREATE TABLE {{schema}}.outbox_migration (
      set        text        COLLATE "C" NOT NULL,
      number     int         NOT NULL,
      name       text        NOT NULL,
      checksum   text        NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT outbox_migration_number_positive CHECK (number > 0),
      PRIMARY KEY (set, number)
    );
  END IF;
END
$outbox$;
