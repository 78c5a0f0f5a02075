-- class: ro-parse
-- caller: owner
-- mode: readonly
-- must: what is one query stays one query: a semicolon at its end, in a literal, in a comment, in a name
-- attacks:
SELECT 1 AS one;
SELECT 1 AS one ; ;
SELECT ';DELETE FROM guest.pad;' AS v
SELECT $x$;$x$ AS v
SELECT 1 AS ";"
/* ; */ SELECT 1 AS one /* ; */
(SELECT 1 AS one)
((SELECT 1 AS one UNION SELECT 2) ORDER BY 1)
VALUES (1), (2)
TABLE guest.pad
WITH x AS (SELECT 1 AS one) SELECT * FROM x
-- check:
SELECT judge.all_fine('attack')
