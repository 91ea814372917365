-- Announces the instance, renews its lanes and takes free ones up to its fair share (the function's comment says how).
-- Parameters: $1 text source · $2 text instance · $3 int lanes · $4 bigint ttl in milliseconds · $5 real rows sent per second ·
--   $6 text how it delivers · $7 text why lanes of it stand still, empty: none does.
-- Locks: the source's lanes and instances. Index: the keys of outbox_lease and outbox_instance.
-- Also why an operator has paused the whole pipeline, null: nobody has; and where others deliver otherwise, how and who.
SELECT t.lane, t.epoch, t.owner, t.remaining_ms, t.lanes, t.share, t.instances,
       (SELECT left(string_agg(h.reason, '; ' ORDER BY h.since, h.person), 500) FROM {{schema}}.outbox_hold h
         WHERE h.source = $1 AND h.scope = 'pipeline'),
       t.delivery_in_force, t.in_force_by
  FROM {{schema}}.outbox_lanes_keep($1, $2, $3::int, $4::bigint * interval '1 millisecond', $5::real, $6, $7) t
