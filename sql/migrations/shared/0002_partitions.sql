-- Daily partitions (UTC), made well ahead: a missing one costs nothing but a detour through the DEFAULT partition.
-- Filled in: schema, schema_literal. Locks: none beyond what it creates.

-- The tables that have a partition for each day and a DEFAULT one; each set of migrations enters its own. storage: the settings
-- of a partition, since they are not inherited.
CREATE TABLE {{schema}}.outbox_daily_table (
  table_name name COLLATE "C" PRIMARY KEY,
  storage    text NOT NULL
);

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
-- partition, waited for half a second at most: a business transaction never waits long behind the maker of partitions.
CREATE FUNCTION {{schema}}.outbox_make_partition(parent regclass, fallback regclass, day date, storage text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms'
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

-- Partitions of every daily table from yesterday to days_ahead days from now. Returns how many it made; safe to repeat, and
-- safe to call from two sessions, of which the second waits. 55P03: somebody held a table's lock for half a second; call
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
    SELECT c.oid::regclass AS parent, p.partdefid::regclass AS fallback, today + n AS day, d.storage
    FROM {{schema}}.outbox_daily_table d
    JOIN pg_class c ON c.relname = d.table_name AND c.relnamespace = to_regnamespace(quote_ident({{schema_literal}}))
    JOIN pg_partitioned_table p ON p.partrelid = c.oid
    CROSS JOIN generate_series(-1, days_ahead) n
    ORDER BY d.table_name, n
  LOOP
    made := made + {{schema}}.outbox_make_partition(wanted.parent, wanted.fallback, wanted.day, wanted.storage)::int;
  END LOOP;
  RETURN made;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_ensure_partitions(int) FROM PUBLIC;
