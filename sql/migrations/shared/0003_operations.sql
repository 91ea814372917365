-- Who did what and why, of all that operators do; and roles. Filled in: schema. Locks: none beyond what it creates.

-- One row a command. `db_role` logged in; `person` is who ran the program, as far as that can be told.
CREATE TABLE {{schema}}.outbox_operation (
  id      bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  db_role text        COLLATE "C" NOT NULL DEFAULT session_user,
  person  text        NOT NULL,
  action  text        COLLATE "C" NOT NULL,
  detail  jsonb       NOT NULL DEFAULT '{}',
  rows    bigint      NOT NULL DEFAULT 0,
  reason  text        NOT NULL,
  CONSTRAINT outbox_operation_action_named CHECK (action ~ '^[a-z][a-z ]{0,39}$')
);
COMMENT ON TABLE {{schema}}.outbox_operation IS 'outboxd: what operators did, who and why; rows counts what it came to';

-- Begins an operation of many transactions; its id is what they are done under.
-- Locks: none. Index: none.
CREATE FUNCTION {{schema}}.outbox_operation_begin(action text, detail jsonb, reason text, person text) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  INSERT INTO {{schema}}.outbox_operation (action, detail, reason, person)
  VALUES (outbox_operation_begin.action, outbox_operation_begin.detail, left(outbox_operation_begin.reason, 2000),
          left(outbox_operation_begin.person, 200))
  RETURNING id;
END;
REVOKE ALL ON FUNCTION {{schema}}.outbox_operation_begin(text, jsonb, text, text) FROM PUBLIC;

-- Adds what a step of it came to, and says why it is done: 'replayed by ROLE (PERSON): REASON'. An operation is its
-- beginner's alone. Locks: the operation's row. Index: primary key.
CREATE FUNCTION {{schema}}.outbox_operation_step(operation bigint, action text, rows bigint) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $outbox$
DECLARE
  note text;
BEGIN
  UPDATE {{schema}}.outbox_operation o SET rows = o.rows + outbox_operation_step.rows
  WHERE o.id = operation AND o.action = outbox_operation_step.action AND o.db_role = session_user
  RETURNING format('%s by %s (%s): %s', CASE o.action WHEN 'replay' THEN 'replayed' ELSE o.action END,
                   o.db_role, o.person, o.reason) INTO note;
  IF note IS NULL THEN
    RAISE EXCEPTION 'outbox_operation_step: % began no % of number %', session_user, outbox_operation_step.action, operation
      USING ERRCODE = 'invalid_parameter_value', HINT = 'outbox_operation_begin begins one';
  END IF;
  RETURN note;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_operation_step(bigint, text, bigint) FROM PUBLIC;

-- Makes a role that a set's grants need, unless it is there: roles belong to the whole server, and databases share them.
-- With the caller's rights. Locks: none that outlive a moment.
CREATE FUNCTION {{schema}}.outbox_make_role(name text, may_login boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $outbox$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = name) THEN
    EXECUTE format('CREATE ROLE %I %s', name, CASE WHEN may_login THEN 'LOGIN' ELSE 'NOLOGIN' END);
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
  NULL;  -- made for another database at the same moment
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_make_role(text, boolean) FROM PUBLIC;
