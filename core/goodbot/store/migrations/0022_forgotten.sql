-- A rating of somebody who was forgotten stood here. The platform shows it still: it is not taken for a missed one.
ALTER TABLE turns ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;
