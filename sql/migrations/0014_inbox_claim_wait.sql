-- Who claims a partition does not wait long for an owner that froze between the move of its offset and its commit: it asks
-- again, and may stop meanwhile. Filled in: schema.
-- Locks: none.
ALTER FUNCTION {{schema}}.inbox_offset_claim(text, text, int) SET lock_timeout = '1s';
