-- class: fdw
-- caller: owner
-- mode: role
-- needs: dblink postgres_fdw
-- must: no connection of guest's own either, and no server, mapping or foreign table
-- setup:
CREATE SERVER loop FOREIGN DATA WRAPPER postgres_fdw OPTIONS (dbname 'postgres');
GRANT USAGE ON FOREIGN SERVER loop TO guest;
GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO guest;
-- attacks:
SELECT dblink_connect('mine', 'loop')
SELECT * FROM dblink('loop', 'SELECT 1') AS t (n integer)
SELECT dblink_exec('dbname=postgres password=x', 'SELECT 1')
CREATE USER MAPPING FOR guest SERVER loop OPTIONS (user 'postgres', password_required 'false')
CREATE USER MAPPING FOR PUBLIC SERVER loop
CREATE FOREIGN TABLE guest.far (a integer) SERVER loop
CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw
IMPORT FOREIGN SCHEMA public FROM SERVER loop INTO guest
ALTER SERVER loop OPTIONS (SET dbname 'x')
SELECT postgres_fdw_disconnect_all()
SELECT * FROM postgres_fdw_get_connections()
-- check:
SELECT judge.none_fine('attack')
