-- Which guest image a run ran in: with another one, its journal may give other fuel.

ALTER TABLE runs ADD COLUMN image TEXT;
