-- Named subsets of the tools; what a run was narrowed to, and what a key may do.

CREATE TABLE toolkits (
  name        TEXT PRIMARY KEY,
  description TEXT NOT NULL,
  tools       TEXT NOT NULL,
  rules       TEXT NOT NULL,
  created_at  REAL NOT NULL
) WITHOUT ROWID;

ALTER TABLE runs ADD COLUMN narrowings TEXT NOT NULL DEFAULT '[]';

ALTER TABLE keys ADD COLUMN access TEXT NOT NULL DEFAULT 'full';
ALTER TABLE keys ADD COLUMN toolkit TEXT;
