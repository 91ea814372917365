-- Until when inserts send a NOTIFY: a sequence's value is outside MVCC, so writers see it at once and it bloats nothing.
-- It expires by itself, and being unlogged it costs neither a flush nor a transaction id.
-- Parameters: $1 bigint milliseconds from now, 0: awake · $2 text the sequence, quoted. Locks: none. Index: none.
SELECT setval($2::text::regclass, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::bigint)
