-- What an operator set up: keys, integrations, connections, policies, sealed secrets.

CREATE TABLE keys (
  id           TEXT PRIMARY KEY,
  name         TEXT NOT NULL,
  digest       BLOB NOT NULL UNIQUE,
  created_at   REAL NOT NULL,
  last_used_at REAL,
  revoked_at   REAL
);
CREATE UNIQUE INDEX keys_live_name ON keys (name) WHERE revoked_at IS NULL;

CREATE TABLE integrations (
  name       TEXT PRIMARY KEY,
  kind       TEXT NOT NULL,
  config     TEXT NOT NULL,
  manifest   BLOB NOT NULL,
  created_at REAL NOT NULL
);

CREATE TABLE connections (
  integration TEXT NOT NULL,
  scope       TEXT NOT NULL,
  name        TEXT NOT NULL,
  config      TEXT NOT NULL,
  created_at  REAL NOT NULL,
  PRIMARY KEY (integration, scope, name)
) WITHOUT ROWID;

CREATE TABLE secrets (
  scope      TEXT NOT NULL,
  name       TEXT NOT NULL,
  version    INTEGER NOT NULL,
  sealed     BLOB NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (scope, name)
) WITHOUT ROWID;

CREATE TABLE facts (
  name  TEXT PRIMARY KEY,
  value BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE rules (
  id         TEXT PRIMARY KEY,
  scope      TEXT NOT NULL,
  target     TEXT NOT NULL,
  pattern    TEXT NOT NULL,
  effect     TEXT NOT NULL,
  reason     TEXT NOT NULL,
  created_at REAL NOT NULL
) WITHOUT ROWID;
