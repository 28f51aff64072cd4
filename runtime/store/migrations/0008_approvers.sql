-- Who may allow a call: `anyone`, or only `another` than the one whose run makes it.

ALTER TABLE rules ADD COLUMN approver TEXT NOT NULL DEFAULT 'anyone';
ALTER TABLE interactions ADD COLUMN approver TEXT NOT NULL DEFAULT 'anyone';
