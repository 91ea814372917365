-- Whether a consumer's tables are there (42P01 where not) and the role may use them.
-- Parameters: $1 the schema's name. Locks: none. Index: catalogue only.
SELECT has_table_privilege(format('%I.processed_msgs', $1::text), 'SELECT')
       AND has_table_privilege(format('%I.processed_msgs', $1::text), 'INSERT')
       AND has_table_privilege(format('%I.processed_msgs', $1::text), 'UPDATE'),
       has_table_privilege(format('%I.dead_msgs', $1::text), 'INSERT')
       AND has_table_privilege(format('%I.inbox_consumer', $1::text), 'INSERT')
