-- The database of a realm, and the role of the servers leasing from it.
\set ON_ERROR_STOP on
\getenv password FLEET_PASSWORD
CREATE DATABASE realm;
\connect realm
CREATE EXTENSION scru64_realm CASCADE;
CREATE ROLE fleet LOGIN PASSWORD :'password';
GRANT EXECUTE ON FUNCTION scru64_realm.realm_id, scru64_realm.lease, scru64_realm.renew,
    scru64_realm.release TO fleet;
