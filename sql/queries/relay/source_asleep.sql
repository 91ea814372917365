-- Until when inserts send a NOTIFY: a sequence's value is outside MVCC, so writers see it at once and it bloats nothing.
-- It expires by itself, and being unlogged it costs neither a flush nor a transaction id.
-- Parameters: $1 bigint milliseconds from now, 0: awake · $2 text the sequence, quoted. Locks: none. Index: none.
-- Awake is the beginning of time, not now: a writer in the same millisecond would still see a flag.
SELECT setval($2::text::regclass, CASE WHEN $1::bigint = 0 THEN 1
                                       ELSE (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::bigint END)
