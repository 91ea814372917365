-- Makes this member the owner of a partition whose offset is kept in the database.
-- Parameters: $1 consumer, $2 topic, $3 partition. Locks: the partition's row. Index: primary key of inbox_offset.
SELECT epoch, next FROM {{schema}}.inbox_offset_claim($1, $2, $3)
