-- A view over the outbox table with the name and the columns that an application writes already (`outboxd migrate --view`).
-- An INSERT becomes one into the table, with the rights of its owner. By a rule and not by a trigger: a row costs what it costs in
-- the table, in a statement of many rows too, and each column given stands once in the rule, so nothing is evaluated twice.
-- UPDATE and DELETE are refused, whoever asks: a message that is taken back so would be lost in silence.
-- The comment tells a later migrate by which mapping the view was made.
-- Filled in: schema, table, table_literal, function_literal, view, view_literal, columns (of the view), into, values, mapping (a literal),
-- own (pairs of literals: columns of the view, and those of the table that outboxd has not made).
-- Parameters: none. Index: none.
-- Locks: ACCESS SHARE on the table; on what it creates.
CREATE VIEW {{view}} AS SELECT {{columns}} FROM {{table}} AS m;

CREATE RULE outbox_insert AS ON INSERT TO {{view}} DO INSTEAD
INSERT INTO {{table}} AS m ({{into}}) VALUES ({{values}})
RETURNING {{columns}};

CREATE OR REPLACE FUNCTION {{schema}}.outbox_insert_only() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $outbox$
BEGIN
  RAISE EXCEPTION 'no % of %.%: what was inserted there is a message that outboxd sends', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
    USING ERRCODE = 'feature_not_supported',
    HINT = 'Take the statement out: outboxd marks what it sent, and removes it after the replay window. '
           'A scheduled message is taken back by outbox_cancel(msg_id).';
END
$outbox$;
-- Before any row is looked for, and also where there is none; only views with a trigger for rows have one for statements.
CREATE TRIGGER outbox_insert_only BEFORE UPDATE OR DELETE ON {{view}}
FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.outbox_insert_only();
CREATE TRIGGER outbox_insert_only_row INSTEAD OF UPDATE OR DELETE ON {{view}}
FOR EACH ROW EXECUTE FUNCTION {{schema}}.outbox_insert_only();
COMMENT ON VIEW {{view}} IS {{mapping}};

DO $outbox$
DECLARE
  owner CONSTANT regrole := (SELECT relowner FROM pg_class WHERE oid = {{table_literal}}::regclass);
  own record;
BEGIN
  -- A column that is not given has the table's default. Those of outboxd's own columns are in the rule.
  FOR own IN SELECT p.named, pg_get_expr(d.adbin, d.adrelid) AS value
             FROM (VALUES {{own}}) p(named, of_table)
             JOIN pg_attribute a ON a.attrelid = {{table_literal}}::regclass AND a.attname = p.of_table
             JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum LOOP
    EXECUTE format('ALTER VIEW %s ALTER COLUMN %I SET DEFAULT %s', {{view_literal}}::regclass, own.named, own.value);
  END LOOP;
  EXECUTE format('ALTER VIEW %s OWNER TO %s', {{view_literal}}::regclass, owner);
  EXECUTE format('ALTER FUNCTION %s OWNER TO %s', {{function_literal}}::regprocedure, owner);
END
$outbox$;
