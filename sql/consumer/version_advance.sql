-- Raises the version of a business's entity; changes nothing where that version or a later one is there already.
-- Parameters: $1 consumer, $2 entity, $3 version. Locks: the entity's row. Index: primary key of inbox_version.
INSERT INTO {{schema}}.inbox_version AS v (consumer, entity, version) VALUES ($1, $2, $3)
    ON CONFLICT (consumer, entity) DO UPDATE SET version = excluded.version WHERE v.version < excluded.version
