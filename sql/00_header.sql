\echo Use "CREATE EXTENSION aidb" to load this file. \quit

-- First in every script that CREATE or ALTER EXTENSION runs. The line above stops somebody who feeds the file to psql;
-- the one below makes sure that no name in the script can resolve to something a user has put in a schema of their own.
-- Everything that is ours is written with its schema.
SET LOCAL search_path TO pg_catalog, pg_temp;

