-- How long the consumer must remember; null: forever.
-- Parameters: $1 consumer, $2 hours or null. Locks: the consumer's row. Index: primary key of inbox_consumer.
SELECT {{schema}}.inbox_register($1, make_interval(hours => $2::int))
