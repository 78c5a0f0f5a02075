-- class: ro-function
-- caller: owner
-- mode: readonly
-- needs: plperl
-- must: a STABLE function in another language cannot write either, nor when it catches the refusal
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.perl_writes() RETURNS text LANGUAGE plperl STABLE AS $f$ spi_exec_query("INSERT INTO guest.pad (note) VALUES ('perl')"); return 'x'; $f$;
CREATE FUNCTION guest.perl_swallows() RETURNS text LANGUAGE plperl STABLE AS $f$
    eval { spi_exec_query("INSERT INTO guest.pad (note) VALUES ('perl')"); };
    eval { spi_exec_query("SELECT pg_advisory_lock(1)"); };
    eval { spi_exec_query("SET ROLE postgres"); };
    eval { spi_commit(); };
    return 'x';
$f$;
-- attacks:
SELECT guest.perl_writes() AS v
SELECT guest.perl_swallows() AS v
-- check:
SELECT NOT judge.fine('attack')
