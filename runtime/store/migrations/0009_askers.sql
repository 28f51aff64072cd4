-- Whose call it is: who was denied a tool again and again is not asked about for a while.

ALTER TABLE interactions ADD COLUMN principal TEXT NOT NULL DEFAULT '';
CREATE INDEX interactions_answered ON interactions (principal, path, decided_at) WHERE decided_at IS NOT NULL;
