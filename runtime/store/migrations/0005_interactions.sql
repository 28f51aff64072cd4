-- Calls that wait, or waited, for a person. `binding` is the hash of the exact call; `arguments` is its JSON.

CREATE TABLE interactions (
  id         TEXT PRIMARY KEY,
  run        INTEGER NOT NULL,
  call       INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  path       TEXT NOT NULL,
  arguments  TEXT NOT NULL,
  args_bytes INTEGER NOT NULL,
  reason     TEXT NOT NULL,
  side_effect TEXT NOT NULL,
  binding    TEXT NOT NULL,
  state      TEXT NOT NULL,
  created_at REAL NOT NULL,
  expires_at REAL NOT NULL,
  decided_at REAL,
  decided_by TEXT,
  content    TEXT
) WITHOUT ROWID;
CREATE INDEX interactions_by_run ON interactions (run, call);
CREATE INDEX interactions_pending ON interactions (expires_at) WHERE state = 'pending';

-- How often a run was begun again after the host had died in the middle of it.
ALTER TABLE runs ADD COLUMN taken_up INTEGER NOT NULL DEFAULT 0;
