-- Identity: what every set of migrations builds on. Filled in: schema. Locks: none beyond CREATE FUNCTION.
-- Both functions are plain enough for the planner to inline: a call costs what its expression costs.

-- A version 7 uuid: 48 bits of milliseconds since 1970, then random. Its time is part of the message's identity.
CREATE FUNCTION {{schema}}.outbox_uuid_v7() RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN encode(
  set_bit(set_bit(
    overlay(uuid_send(gen_random_uuid())
            PLACING substring(int8send(floor(date_part('epoch', clock_timestamp()) * 1000)::bigint) FROM 3)
            FROM 1 FOR 6),
    52, 1), 53, 1),
  'hex')::uuid;

-- The time inside a version 7 uuid; -infinity for any other id. Consumers partition what they remember by it.
CREATE FUNCTION {{schema}}.outbox_id_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN get_byte(uuid_send(id), 6) >> 4 = 7 AND get_byte(uuid_send(id), 8) >> 6 = 2
    THEN to_timestamp(('x' || encode(substring(uuid_send(id) FOR 6), 'hex'))::bit(48)::bigint / 1000.0::float8)
  WHEN id IS NOT NULL THEN '-infinity'::timestamptz
END;
