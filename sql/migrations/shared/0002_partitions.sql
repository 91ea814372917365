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

-- Makes one partition of `parent` for one day and moves what the DEFAULT partition holds of that day: 'made', or why not:
-- 'there' (it exists), 'large' (more than moved_max such rows: inserts would wait too long for their move). 55P03: a lock could
-- not be had; nothing happened, call again later. Call it as a transaction of its own: what it locks is held to the end.
-- Made apart and then attached: CREATE TABLE … PARTITION OF would lock out every insert of the parent.
-- An insert chooses its partition under its lock of the parent and locks the partition afterwards: one on its way into the
-- DEFAULT partition would then find that its row belongs there no more (23514). So where a row of the day may be on its way,
-- no insert may be under way at all. Of a day that begins in more than an hour, and of which the DEFAULT partition holds
-- nothing, none is.
-- Locks: one wait at most, of 100 ms, and holding nothing that anybody else asks for: SHARE ROW EXCLUSIVE on the parent (new
-- inserts wait meanwhile), for a quiet day SHARE UPDATE EXCLUSIVE, for which no insert waits. Then ACCESS EXCLUSIVE on the
-- DEFAULT partition, at once or not at all: who has read that one and inserts next would wait for the first lock while the
-- maker waited for them. What is refused is let go of, and asked for again after a pause. Index: none (reads the DEFAULT partition).
CREATE FUNCTION {{schema}}.outbox_make_partition(
  parent regclass, fallback regclass, day date, storage text, moved_max int DEFAULT 10000) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
AS $outbox$
DECLARE
  low CONSTANT timestamptz := day::timestamp AT TIME ZONE 'UTC';
  high CONSTANT timestamptz := (day + 1)::timestamp AT TIME ZONE 'UTC';
  tries CONSTANT int := 5;
  part text;
  by_column text;
  columns text;
  of_the_day bigint;
  quiet boolean;
BEGIN
  SELECT format('%I.%I', n.nspname, {{schema}}.outbox_partition_name(c.relname, 'p' || to_char(day, 'YYYYMMDD'))),
         quote_ident(a.attname)
  INTO part, by_column
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_partitioned_table p ON p.partrelid = c.oid
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.partattrs[0]
  WHERE c.oid = parent;
  IF to_regclass(part) IS NOT NULL THEN
    RETURN 'there';
  END IF;
  EXECUTE format('SELECT count(*) FROM (SELECT FROM %1$s WHERE %2$s >= %3$L AND %2$s < %4$L LIMIT %5$s) x',
                 fallback, by_column, low, high, moved_max::bigint + 1) INTO of_the_day;
  IF of_the_day > moved_max THEN
    RETURN 'large';
  END IF;
  quiet := of_the_day = 0 AND low > clock_timestamp() + interval '1 hour';
  EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED '
                 'INCLUDING INDEXES INCLUDING STORAGE INCLUDING COMPRESSION) WITH (%s)', part, parent, storage);
  -- Inserts wait until the commit, which must not wait for a standby that is away.
  PERFORM set_config('synchronous_commit', 'local', true);
  FOR attempt IN 1 .. tries LOOP
    BEGIN
      EXECUTE format('LOCK TABLE ONLY %s IN %s', parent,
                     CASE WHEN quiet THEN 'SHARE UPDATE EXCLUSIVE MODE' ELSE 'SHARE ROW EXCLUSIVE MODE' END);
      EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', fallback);
      EXIT;
    EXCEPTION WHEN lock_not_available THEN
      IF attempt = tries THEN
        RAISE;
      END IF;
    END;
    PERFORM pg_sleep(0.02 + random() * 0.1);
  END LOOP;
  SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO columns
  FROM pg_attribute WHERE attrelid = parent AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
  EXECUTE format('WITH moved AS (DELETE FROM %1$s WHERE %2$s >= %4$L AND %2$s < %5$L RETURNING %3$s) '
                 'INSERT INTO %6$s (%3$s) SELECT %3$s FROM moved', fallback, by_column, columns, low, high, part);
  GET DIAGNOSTICS of_the_day = ROW_COUNT;
  IF quiet AND of_the_day > 0 THEN
    RAISE EXCEPTION 'outbox_make_partition: rows of % came into % meanwhile', day, fallback
      USING ERRCODE = 'lock_not_available';
  END IF;
  EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)', parent, part, low, high);
  PERFORM {{schema}}.outbox_share_grants(parent, part::regclass);
  RETURN 'made';
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_make_partition(regclass, regclass, date, text, int) FROM PUBLIC;

-- Makes the first partition that is missing of the daily tables, from yesterday to days_ahead days from now, today's first:
-- 1: it made one, call it again, in another transaction, so that no lock is waited for while one is held; 0: all are there;
-- -1: the DEFAULT partition holds more than moved_max rows of each day that is missing. 55P03: locks that it needs are in
-- use; call again later. Safe to repeat, and safe to call from two sessions, of which the second waits.
CREATE FUNCTION {{schema}}.outbox_ensure_partitions(days_ahead int DEFAULT 7, moved_max int DEFAULT 10000) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $outbox$
DECLARE
  today CONSTANT date := (now() AT TIME ZONE 'UTC')::date;
  answer int := 0;
  refused int := 0;
  wanted record;
BEGIN
  IF (days_ahead BETWEEN 0 AND 366 AND moved_max >= 0) IS NOT TRUE THEN
    RAISE EXCEPTION 'outbox_ensure_partitions: days_ahead is %, must be 0 to 366; moved_max is %, must not be negative',
      days_ahead, moved_max USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- Callers wait for one another here, as long as they like: nobody else waits for this lock.
  PERFORM pg_advisory_xact_lock(hashtextextended('outbox_ensure_partitions', hashtext({{schema_literal}})));
  FOR wanted IN
    SELECT c.oid::regclass AS parent, p.partdefid::regclass AS fallback, today + n AS day, d.storage
    FROM {{schema}}.outbox_daily_table d
    JOIN pg_class c ON c.relname = d.table_name AND c.relnamespace = to_regnamespace(quote_ident({{schema_literal}}))
    JOIN pg_partitioned_table p ON p.partrelid = c.oid
    CROSS JOIN generate_series(-1, days_ahead) n
    WHERE to_regclass(format('%I.%I', {{schema_literal}}, {{schema}}.outbox_partition_name(
            c.relname, 'p' || to_char(today + n, 'YYYYMMDD')))) IS NULL
    ORDER BY n < 0, n, d.table_name
  LOOP
    BEGIN
      CASE {{schema}}.outbox_make_partition(wanted.parent, wanted.fallback, wanted.day, wanted.storage, moved_max)
        WHEN 'made' THEN RETURN 1;
        WHEN 'large' THEN answer := -1;
        ELSE NULL;
      END CASE;
    EXCEPTION WHEN lock_not_available THEN
      refused := refused + 1;
      EXIT WHEN refused = 4;  -- whoever is in the way is in the way of the others, too
    END;
  END LOOP;
  IF refused > 0 THEN
    RAISE EXCEPTION 'outbox_ensure_partitions: the locks of a table were in use'
      USING ERRCODE = 'lock_not_available', HINT = 'nothing happened; call it again later';
  END IF;
  RETURN answer;
END
$outbox$;
REVOKE ALL ON FUNCTION {{schema}}.outbox_ensure_partitions(int, int) FROM PUBLIC;
