-- class: files
-- caller: superuser
-- mode: role
-- must: COPY and LOAD are refused in a writing call too, to a client and to a file
-- attacks:
COPY store.goods TO STDOUT
COPY store.goods FROM STDIN
COPY (SELECT * FROM store.goods) TO '/tmp/x'
COPY guest.pad FROM '/etc/passwd'
COPY guest.pad TO PROGRAM 'cat'
LOAD '$libdir/plugins/x'
LOAD 'aidb'
DO $$ BEGIN COPY guest.pad TO '/tmp/x'; END $$
DO $$ BEGIN EXECUTE 'COPY guest.pad FROM PROGRAM ''echo 1'''; END $$
DO LANGUAGE plperl $$ open(F, '>/tmp/x') $$
DO LANGUAGE c $$ x $$
DO LANGUAGE internal $$ x $$
-- check:
SELECT judge.none_fine('attack')
