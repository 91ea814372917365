-- Gives dead messages up, in the order given, and lets their keys go (the function's comment says how).
-- Filled in: schema. Parameters: $1 bigint[] ids · $2 text why. Locks: as dead_retry.sql. Index: see the function.
-- Column: how many were dead still.
SELECT count(*) FILTER (WHERE {{schema}}.outbox_dead_discard(d.id, $2::text)) FROM unnest($1::bigint[]) d (id)
