-- The upkeep of processed_msgs, by hand; see inbox_maintain() in sql/migrations. Filled in: schema.
-- Parameters: $1 days ahead. Locks: as inbox_maintain says. Index: catalogue, then each partition's primary key.
SELECT busy, made, dropped, purged, waiting FROM {{schema}}.inbox_maintain($1)
