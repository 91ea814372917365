-- What became of a message whose row this transaction inserted.
-- Parameters: $1 consumer, $2 state, $3 msg_id. Locks: the row, which is this transaction's own. Index: primary key.
UPDATE {{schema}}.processed_msgs p SET state = $2
 WHERE p.consumer = $1 AND p.msg_id = $3 AND p.id_time = {{schema}}.outbox_id_time($3)
