-- The database of a realm, its owner, who is no superuser, and the role of the servers leasing from it.
\set ON_ERROR_STOP on
\getenv password FLEET_PASSWORD
CREATE ROLE realm LOGIN;
CREATE ROLE fleet LOGIN PASSWORD :'password';
CREATE DATABASE realm OWNER realm;
\connect realm
SET ROLE realm;
CREATE EXTENSION scru64_realm CASCADE;
GRANT EXECUTE ON FUNCTION scru64_realm.realm_id, scru64_realm.lease, scru64_realm.renew,
    scru64_realm.release TO fleet;
