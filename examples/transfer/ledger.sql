-- The ledger's own table. It starts empty and holds what the messages say.
CREATE TABLE account (id text PRIMARY KEY, balance bigint NOT NULL);
