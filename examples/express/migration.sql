BEGIN;
CREATE EXTENSION scru64;
CREATE TABLE event (
	id scru64 DEFAULT scru64_generate() PRIMARY KEY,
	what text NOT NULL CHECK (what <> '')
);
COMMIT;
