-- The headers of a dead message, as bytes again, in their order.
-- Parameters: $1 id. Locks: ACCESS SHARE on dead_msgs. Index: primary key.
SELECT CASE jsonb_typeof(h.pair -> 0) WHEN 'string' THEN convert_to(h.pair ->> 0, 'UTF8')
            ELSE decode(h.pair -> 0 ->> 'base64', 'base64') END,
       CASE jsonb_typeof(h.pair -> 1) WHEN 'string' THEN convert_to(h.pair ->> 1, 'UTF8')
            WHEN 'object' THEN decode(h.pair -> 1 ->> 'base64', 'base64') END
  FROM {{schema}}.dead_msgs d CROSS JOIN LATERAL jsonb_array_elements(d.headers) WITH ORDINALITY AS h (pair, place)
 WHERE d.id = $1 ORDER BY h.place
