-- What a server asks a person in the middle of a call: its words and its form as JSON, and what the call goes on with
-- once there is an answer. Without the latter it goes on only in the process that made it.

ALTER TABLE interactions ADD COLUMN question TEXT;
ALTER TABLE interactions ADD COLUMN resume TEXT;
