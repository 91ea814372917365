-- Says that everything of a partition before an offset is settled; false: it is another's now.
-- Parameters: $1 consumer, $2 topic, $3 partition, $4 epoch, $5 next. Locks: the partition's row. Index: primary key of
-- inbox_offset.
SELECT {{schema}}.inbox_offset_move($1, $2, $3, $4, $5)
