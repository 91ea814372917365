-- The consumer's side: what was processed, and what could not be. Filled in: schema.
-- Locks: only on what it creates.

-- One row per message and consumer, written in the transaction of the handler's own writes. A message's identity is
-- msg_id alone: id_time is computed from it and the CHECK holds that, so the key is unique in (consumer, msg_id), and
-- the table can still be partitioned, and shortened, by time.
CREATE TABLE {{schema}}.processed_msgs (
  consumer       text        COLLATE "C" NOT NULL,
  msg_id         uuid        NOT NULL,
  id_time        timestamptz NOT NULL,
  state          text        COLLATE "C" NOT NULL DEFAULT 'applied',
  payload_sha256 bytea       NOT NULL,
  topic          text        COLLATE "C" NOT NULL,
  partition      int         NOT NULL,
  "offset"       bigint      NOT NULL,
  processed_at   timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT processed_id_time_of_id CHECK (id_time = {{schema}}.outbox_id_time(msg_id)),
  CONSTRAINT processed_state_known CHECK (state IN ('applied', 'parked', 'dead', 'discarded')),
  CONSTRAINT processed_sha256_length CHECK (octet_length(payload_sha256) = 32),
  CONSTRAINT processed_consumer_bounded CHECK (octet_length(consumer) BETWEEN 1 AND 200),
  PRIMARY KEY (consumer, msg_id, id_time)
) PARTITION BY RANGE (id_time);

COMMENT ON TABLE {{schema}}.processed_msgs IS 'outbox: which message each consumer has processed; its primary key is the judge';

-- Ids without a time in them are kept until an explicit purge; what no daily partition takes is kept, too.
CREATE TABLE {{schema}}.processed_msgs_timeless PARTITION OF {{schema}}.processed_msgs
  FOR VALUES FROM (MINVALUE) TO ('1970-01-01 00:00:00+00');
CREATE TABLE {{schema}}.processed_msgs_default PARTITION OF {{schema}}.processed_msgs DEFAULT;

-- Messages that were not applied, as they came, for an operator. A record of Kafka that comes again is here once
-- (insert with ON CONFLICT DO NOTHING); a topic created again has the same offsets but hardly the same payloads.
CREATE TABLE {{schema}}.dead_msgs (
  id             bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  consumer       text        COLLATE "C" NOT NULL,
  msg_id         uuid,
  topic          text        COLLATE "C" NOT NULL,
  partition      int         NOT NULL,
  "offset"       bigint      NOT NULL,
  msg_key        bytea,
  body           bytea,
  headers        jsonb       NOT NULL DEFAULT '[]',
  verdict        text        COLLATE "C" NOT NULL,
  error          text        NOT NULL DEFAULT '',
  attempts       int         NOT NULL DEFAULT 1,
  payload_sha256 bytea,
  created_at     timestamptz NOT NULL DEFAULT now(),
  resolved_at    timestamptz,
  resolution     text,
  CONSTRAINT dead_msgs_headers_list CHECK (jsonb_typeof(headers) = 'array'),
  CONSTRAINT dead_msgs_resolved_with_resolution CHECK ((resolved_at IS NULL) = (resolution IS NULL)),
  CONSTRAINT dead_msgs_once UNIQUE NULLS NOT DISTINCT (consumer, topic, partition, "offset", payload_sha256)
);
CREATE INDEX ON {{schema}}.dead_msgs (consumer, msg_id) WHERE resolved_at IS NULL;

COMMENT ON COLUMN {{schema}}.dead_msgs.headers IS 'array of [name, value], in the order they came; what is not UTF-8 as {"base64": …}';
