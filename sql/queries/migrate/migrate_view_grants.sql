-- What `outboxd migrate --view --grants` gives: an application may insert, and read nothing.
-- Filled in: view, view_schema. Parameters: none. Locks: none that outlive a moment. Index: none.
GRANT USAGE ON SCHEMA {{view_schema}} TO outbox_app;
GRANT INSERT ON {{view}} TO outbox_app;
