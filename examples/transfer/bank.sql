-- The payment core's own table, beside the outbox.
CREATE TABLE account (id text PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0));
INSERT INTO account VALUES ('alice', 10000), ('bob', 5000);
