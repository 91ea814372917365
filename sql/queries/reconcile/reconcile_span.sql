-- From when to when `outboxd reconcile` looks, what time it is, and before when rows may have been dropped with their day.
-- Filled in: schema. Locks: none. Index: catalogs; outbox_operation is small.
-- Parameters: $1 timestamptz from, null: open · $2 timestamptz before, null: open · $3 text, the table's quoted name.
SELECT coalesce($1::timestamptz, '-infinity'), coalesce($2::timestamptz, 'infinity'), clock_timestamp(),
       greatest(coalesce((SELECT min(substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM [(]''([^'']+)''[)]')::timestamptz)
                 FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = $3::text::regclass), '-infinity'),
                (SELECT max((o.detail ->> 'before')::timestamptz) FROM {{schema}}.outbox_operation o
                 WHERE o.action = 'purge' AND o.rows > 0))
