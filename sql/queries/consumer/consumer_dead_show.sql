-- One message of dead_msgs as JSON, its key and body with every byte that is no printable ASCII escaped. Filled in: schema.
-- Parameters: $1 id. Locks: none. Index: primary key of dead_msgs.
SELECT jsonb_pretty(to_jsonb(d) - '{msg_key,body,payload_sha256,key_sha256}'::text[] || jsonb_build_object(
         'msg_key', encode(d.msg_key, 'escape'), 'body', encode(d.body, 'escape'),
         'payload_sha256', encode(d.payload_sha256, 'hex')))
  FROM {{schema}}.dead_msgs d WHERE d.id = $1
