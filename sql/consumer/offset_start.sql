-- Where a partition starts that the group has no committed offset of: at $4, or where that was decided before.
-- Parameters: $1 consumer, $2 topic, $3 partition, $4 bigint next. Locks: the partition's row. Index: primary key of inbox_offset.
SELECT {{schema}}.inbox_offset_start($1, $2, $3, $4)
