-- class: cursor
-- caller: superuser
-- mode: role
-- needs: plperl
-- txn: block
-- must: a query that a Perl function leaves half read is closed, so that the caller can commit
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.half() RETURNS integer LANGUAGE plperl AS $f$
    my $c = spi_query("SELECT guest.payload('half read') FROM generate_series(1, 10)");
    spi_fetchrow($c);
    return 1;
$f$;
-- attack:
SELECT guest.half() AS v
-- after:
INSERT INTO safe.breach VALUES ('the caller', 'after')
-- check:
SELECT judge.fine('attack') AND judge.fine('commit') AND (SELECT count(*) = 1 FROM safe.breach)
