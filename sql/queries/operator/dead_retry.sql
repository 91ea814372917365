-- Sends dead messages again, in the order given, each before the later rows of its key (the function's comment says how).
-- Filled in: schema. Parameters: $1 bigint[] ids. Locks: the holds of their keys, the rows, the held rows of keys let go.
-- Index: see the function. Column: how many were dead still.
SELECT count(*) FILTER (WHERE {{schema}}.outbox_dead_retry(d.id)) FROM unnest($1::bigint[]) d (id)
