-- class: ro-parse
-- caller: member
-- mode: readonly
-- must: one statement and no more, however it is dressed up
-- attacks:
SELECT 1; DELETE FROM guest.pad
SELECT 1;; DELETE FROM guest.pad;
DELETE FROM guest.pad; SELECT 1
/* SELECT 1 */ DELETE FROM guest.pad
/* a /* nested */ comment */ DELETE FROM guest.pad
-- attack:
-- a comment
DELETE FROM guest.pad
-- attack:
SELECT 1 AS one -- comment ; DELETE FROM guest.pad
; DELETE FROM guest.pad
-- attacks:
SELECT $$;$$; DELETE FROM guest.pad
SELECT E'\''; DELETE FROM guest.pad --'
SELECT $a$ $b$ $a$; DELETE FROM guest.pad
SELECT U&'\0027'; DELETE FROM guest.pad
SELECT "a;b" FROM guest.pad; DELETE FROM guest.pad
WITH x AS (SELECT 1) DELETE FROM guest.pad
(DELETE FROM guest.pad)
SELECT 1 UNION DELETE FROM guest.pad
TABLE guest.pad; TRUNCATE guest.pad
EXPLAIN SELECT 1; DELETE FROM guest.pad
\! true
\copy guest.pad to x
SELECT 1 \g
COMMIT; DELETE FROM guest.pad
;
;;;
-- attack:
/* only a comment */
-- attack:
 
-- check:
SELECT judge.none_fine('attack')
