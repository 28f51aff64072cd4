-- Runs, their calls and journals. Times are Unix seconds; JSON and msgpack are opaque here.

CREATE TABLE runs (
  n               INTEGER PRIMARY KEY,
  id              TEXT NOT NULL UNIQUE,
  status          TEXT NOT NULL,
  language        TEXT NOT NULL,
  isolation       TEXT NOT NULL,
  principal       TEXT NOT NULL,
  toolkit         TEXT,
  labels          TEXT NOT NULL,
  created_at      REAL NOT NULL,
  started_at      REAL,
  ended_at        REAL,
  source_sha256   TEXT NOT NULL,
  error           TEXT,
  limit_hit       TEXT,
  usage           TEXT NOT NULL,
  budgets         TEXT NOT NULL,
  idempotency_key TEXT,
  request_sha256  TEXT,
  seed            INTEGER NOT NULL,
  clock_us        INTEGER,
  journal_whole   INTEGER NOT NULL,
  result_ref      TEXT,
  source          TEXT NOT NULL,
  input           BLOB NOT NULL,
  result          BLOB,
  logs            BLOB NOT NULL,
  emitted         BLOB NOT NULL,
  calls           BLOB NOT NULL,
  timeline        BLOB NOT NULL
);
CREATE INDEX runs_by_status ON runs (status, n);
CREATE UNIQUE INDEX runs_by_idempotency ON runs (principal, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE run_labels (
  run   INTEGER NOT NULL,
  key   TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run, key)
) WITHOUT ROWID;
CREATE INDEX run_labels_by_key ON run_labels (key, value, run);

-- Calls with an effect, written before they leave, and those that somebody made directly (run 0).
CREATE TABLE calls (
  n          INTEGER PRIMARY KEY,
  run        INTEGER NOT NULL,
  id         INTEGER NOT NULL,
  path       TEXT NOT NULL,
  outcome    TEXT NOT NULL,
  started_at REAL NOT NULL,
  facts      TEXT NOT NULL
);
CREATE UNIQUE INDEX calls_by_run ON calls (run, id);
CREATE INDEX calls_sending ON calls (run) WHERE outcome = 'sending';

-- Append-only. `entries` is a stream of msgpack arrays; `seq` orders the rows of a run.
CREATE TABLE journal (
  run     INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  entries BLOB NOT NULL,
  PRIMARY KEY (run, seq)
) WITHOUT ROWID;

-- Large values, once each; a blob lives as long as a run uses it.
CREATE TABLE blobs (
  n      INTEGER PRIMARY KEY,
  sha256 BLOB NOT NULL UNIQUE,
  data   BLOB NOT NULL
);
CREATE TABLE blob_uses (
  run    INTEGER NOT NULL,
  sha256 BLOB NOT NULL,
  PRIMARY KEY (run, sha256)
) WITHOUT ROWID;
CREATE INDEX blob_uses_by_blob ON blob_uses (sha256);
