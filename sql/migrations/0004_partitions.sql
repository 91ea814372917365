-- Daily partitions (UTC), made well ahead: a missing one costs nothing but a detour through the DEFAULT partition.
-- Filled in: schema, table_literal.

-- A partition's name: the table's, shortened where the suffix would not fit into 63 bytes.
CREATE FUNCTION {{schema}}.outbox_partition_name(table_name text, suffix text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN octet_length(table_name) + octet_length(suffix) < 63 THEN table_name || '_' || suffix
            ELSE left(table_name, 4) || '_' || left(md5(table_name), 16) || '_' || suffix END;

-- Gives a partition what is granted on its parent, for statements that address a partition itself.
CREATE FUNCTION {{schema}}.outbox_share_grants(parent regclass, part regclass) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $outbox$
DECLARE
  given record;
BEGIN
  FOR given IN SELECT a.privilege_type AS privilege, a.grantee::regrole AS role
               FROM pg_class c, aclexplode(c.relacl) a
               WHERE c.oid = parent AND a.grantee NOT IN (c.relowner, 0) LOOP
    EXECUTE format('GRANT %s ON %s TO %s', given.privilege, part, given.role);
  END LOOP;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_share_grants(regclass, regclass) FROM PUBLIC;

-- Makes one partition of `parent` for one day, unless it exists, and moves what the DEFAULT partition holds of that day.
-- Made apart and then attached: CREATE TABLE … PARTITION OF would lock out every insert of the parent.
-- Locks: SHARE UPDATE EXCLUSIVE on the parent (which also keeps out a second caller), ACCESS EXCLUSIVE on its DEFAULT
-- partition, never longer than lock_timeout in the waiting.
CREATE FUNCTION {{schema}}.outbox_make_partition(parent regclass, fallback regclass, day date, storage text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s'
AS $outbox$
DECLARE
  low CONSTANT timestamptz := day::timestamp AT TIME ZONE 'UTC';
  high CONSTANT timestamptz := (day + 1)::timestamp AT TIME ZONE 'UTC';
  part text;
  by_column text;
  columns text;
BEGIN
  SELECT format('%I.%I', n.nspname, {{schema}}.outbox_partition_name(c.relname, 'p' || to_char(day, 'YYYYMMDD'))),
         quote_ident(a.attname)
  INTO part, by_column
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_partitioned_table p ON p.partrelid = c.oid
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.partattrs[0]
  WHERE c.oid = parent;
  IF to_regclass(part) IS NOT NULL THEN
    RETURN false;
  END IF;
  EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent);
  IF to_regclass(part) IS NOT NULL THEN
    RETURN false;
  END IF;
  EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED '
                 'INCLUDING INDEXES INCLUDING STORAGE INCLUDING COMPRESSION) WITH (%s)', part, parent, storage);
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', fallback);
  SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO columns
  FROM pg_attribute WHERE attrelid = parent AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
  EXECUTE format('WITH moved AS (DELETE FROM %1$s WHERE %2$s >= %4$L AND %2$s < %5$L RETURNING %3$s) '
                 'INSERT INTO %6$s (%3$s) SELECT %3$s FROM moved', fallback, by_column, columns, low, high, part);
  EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)', parent, part, low, high);
  PERFORM {{schema}}.outbox_share_grants(parent, part::regclass);
  RETURN true;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_make_partition(regclass, regclass, date, text) FROM PUBLIC;

-- Settings of a partition; storage parameters are not inherited, so each gets them when it is made.
-- outbox: half of a page is left free, so that a mark writes the row's new version next to the old one: half the pages
-- touched and a fraction of the WAL. Autovacuum goes by rows rather than by a share of a table of millions.
CREATE FUNCTION {{schema}}.outbox_partition_settings(kind text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE kind
  WHEN 'outbox' THEN 'fillfactor = 50, '
    'autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, '
    'autovacuum_vacuum_cost_delay = 1, autovacuum_vacuum_cost_limit = 2000, '
    'autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 10000'
  WHEN 'processed' THEN 'autovacuum_vacuum_insert_scale_factor = 0.1, '
    'autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 10000'
END;

DO $outbox$
DECLARE
  parent CONSTANT regclass := {{table_literal}}::regclass;
BEGIN
  EXECUTE (SELECT format('CREATE TABLE %I.%I PARTITION OF %s DEFAULT WITH (%s)', n.nspname,
                         {{schema}}.outbox_partition_name(c.relname, 'default'), parent,
                         {{schema}}.outbox_partition_settings('outbox'))
           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = parent);
END
$outbox$;

-- Partitions of both tables from yesterday to days_ahead days from now. Returns how many it made; safe to repeat, and
-- safe to call from two sessions, of which the second waits. 55P03: somebody held a table's lock for two seconds; call
-- again later.
CREATE FUNCTION {{schema}}.outbox_ensure_partitions(days_ahead int DEFAULT 7) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
DECLARE
  today CONSTANT date := (now() AT TIME ZONE 'UTC')::date;
  made int := 0;
  wanted record;
BEGIN
  IF days_ahead NOT BETWEEN 0 AND 366 THEN
    RAISE EXCEPTION 'outbox_ensure_partitions: days_ahead is %, must be 0 to 366', days_ahead
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- Callers wait for one another here, as long as they like: lock_timeout is for locks that hold up the traffic.
  PERFORM pg_advisory_xact_lock(hashtextextended('outbox_ensure_partitions', hashtext({{schema_literal}})));
  FOR wanted IN
    SELECT t.parent, p.partdefid::regclass AS fallback, today + n AS day, {{schema}}.outbox_partition_settings(t.kind) AS storage
    FROM (VALUES ({{table_literal}}::regclass, 'outbox'),
                 (to_regclass(format('%I.processed_msgs', {{schema_literal}})), 'processed')) t(parent, kind)
    JOIN pg_partitioned_table p ON p.partrelid = t.parent
    CROSS JOIN generate_series(-1, days_ahead) n
    ORDER BY t.kind, n
  LOOP
    made := made + {{schema}}.outbox_make_partition(wanted.parent, wanted.fallback, wanted.day, wanted.storage)::int;
  END LOOP;
  RETURN made;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_ensure_partitions(int) FROM PUBLIC;
