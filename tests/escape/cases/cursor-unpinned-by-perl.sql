-- class: cursor
-- caller: superuser
-- mode: role
-- needs: plperl
-- txn: block
-- must: the portal of the caller's loop cannot be unpinned either, which would end the loop with an internal error
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.closes() RETURNS text LANGUAGE plperl AS $f$
    my $n = 0;
    for my $i (1 .. 40) { $n++ if eval { spi_cursor_close("<unnamed portal $i>"); 1 }; $n++ if eval { spi_fetchrow("<unnamed portal $i>"); 0 }; }
    return "closed $n";
$f$;
-- before:
CREATE TEMP TABLE looped (n integer, told text)
-- before:
DO $$
DECLARE r record;
BEGIN
    FOR r IN SELECT id FROM store.ledger ORDER BY id LOOP
        INSERT INTO looped VALUES (r.id, harness.ask('guest_writes', 'SELECT guest.closes() AS v'));
        INSERT INTO looped VALUES (r.id, harness.ask('guest_reads', 'SELECT 1 AS one'));
    END LOOP;
END $$
-- attack:
SELECT guest.closes() AS v
-- after:
SELECT count(*), count(DISTINCT told), min(told) FROM looped
-- check:
SELECT judge.all_fine('before') AND judge.output('after') = '20|2|[{"one": 1}]'
