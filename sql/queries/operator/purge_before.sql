-- A moment as its operator wrote it, for the record and for every batch alike. Filled in: none. Locks: none. Index: none.
-- Parameters: $1 timestamptz.
SELECT $1::timestamptz
