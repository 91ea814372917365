-- Gives lanes back, each under the epoch it was held by, or all of them where the instance leaves (the function's comment
-- says how). Parameters: $1 text source · $2 text instance · $3 smallint[] lanes · $4 bigint[] epochs · $5 bool it leaves.
-- Locks: the source's lanes and instances. Index: the keys of outbox_lease and outbox_instance.
SELECT {{schema}}.outbox_lanes_give($1, $2, $3::smallint[], $4::bigint[], $5::bool)
