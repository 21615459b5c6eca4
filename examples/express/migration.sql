BEGIN;
CREATE EXTENSION IF NOT EXISTS scru64;
CREATE TABLE event (
	id scru64 DEFAULT scru64_generate() PRIMARY KEY,
	what text NOT NULL CHECK (what <> '')
);
COMMIT;
