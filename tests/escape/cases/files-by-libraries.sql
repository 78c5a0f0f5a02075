-- class: files
-- caller: superuser
-- mode: readonly
-- agent: bare
-- needs: adminpack
-- must: a library's functions for the server's files are as far away as the server's own
-- attacks:
SELECT * FROM pg_logdir_ls() AS l (a timestamp, b text)
SELECT pg_file_write('x', 'x', false)
SELECT pg_file_unlink('x')
SELECT pg_file_rename('x', 'y')
SELECT pg_file_rename('x', 'y', 'z')
SELECT pg_file_sync('x')
-- check:
SELECT bool_and(message LIKE '%is not allowed in a%') FROM judge.seen WHERE phase = 'attack'
