-- class: lo
-- caller: superuser
-- mode: role
-- txn: block
-- must: large objects cannot be made, and descriptors that the caller has open cannot be read, written or closed
-- before:
SELECT lo_from_bytea(70001, 'HUSH large')
-- before:
SELECT lo_open(70001, x'60000'::integer)
-- attacks:
SELECT convert_from(loread(0, 100), 'UTF8') AS v
SELECT lowrite(0, 'overwritten')
SELECT lo_lseek(0, 0, 0)
SELECT lo_lseek64(0, 0, 0)
SELECT lo_tell(0)
SELECT lo_truncate(0, 1)
SELECT lo_close(0)
SELECT lo_open(70001, 262144)
SELECT lo_get(70001)
SELECT lo_get(70001, 0, 4)
SELECT lo_put(70001, 0, 'x')
SELECT lo_unlink(70001)
SELECT lo_creat(-1)
SELECT lo_create(70002)
SELECT lo_from_bytea(70003, 'x')
SELECT lo_import('/etc/hostname')
SELECT data FROM pg_largeobject
DO $$ BEGIN PERFORM loread(0, 10); END $$
ALTER LARGE OBJECT 70001 OWNER TO guest
GRANT SELECT ON LARGE OBJECT 70001 TO guest
-- after:
SELECT convert_from(loread(0, 100), 'UTF8')
-- check:
SELECT judge.none_fine('attack') AND judge.told() NOT LIKE '%HUSH%' AND judge.output('after') = 'HUSH large'
-- check:
SELECT count(*) = 1 FROM pg_largeobject_metadata
