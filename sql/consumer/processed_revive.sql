-- A dead or parked message is to be applied after all: at most one transaction can change its dedup row so.
-- Parameters: $1 consumer, $2 msg_id, $3 state. Locks: the row. Index: primary key.
UPDATE {{schema}}.processed_msgs p SET state = $3, processed_at = now()
 WHERE p.consumer = $1 AND p.msg_id = $2 AND p.id_time = {{schema}}.outbox_id_time($2) AND p.state IN ('parked', 'dead')
