-- Every row counted by its status: reads the whole table. For `outboxd status --exact`.
-- Filled in: table. Parameters: none. Locks: none. Index: none.
SELECT count(*) FILTER (WHERE status = 'SENT'), count(*) FILTER (WHERE status = 'CANCELLED'),
       count(*) FILTER (WHERE status = 'DISCARDED')
FROM {{table}}
