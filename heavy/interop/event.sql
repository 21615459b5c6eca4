-- The database of the programs here, unless they make tables of their own

CREATE EXTENSION IF NOT EXISTS scru64;
CREATE TABLE event (
	id scru64 DEFAULT scru64_generate() PRIMARY KEY,
	what text NOT NULL,
	related scru64[]
);
