-- What is open about an integration after a refresh: tools that await review, places held back, tools that went.

ALTER TABLE integrations ADD COLUMN review TEXT NOT NULL DEFAULT '{}';
