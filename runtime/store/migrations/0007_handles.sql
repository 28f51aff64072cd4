-- Values of tools that were too large for their script: who may read them. The value itself is a blob of the run.

CREATE TABLE handles (
  id         TEXT PRIMARY KEY,
  run        INTEGER NOT NULL,
  principal  TEXT NOT NULL,
  sha256     BLOB NOT NULL,
  bytes      INTEGER NOT NULL,
  created_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX handles_by_run ON handles (run);
