-- The next rows of reconcile_rows or reconcile_processed. Filled in: none. Parameters: none. Locks: none. Index: none.
FETCH FORWARD 1000 FROM reconciled
