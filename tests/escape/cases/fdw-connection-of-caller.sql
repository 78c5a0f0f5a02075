-- class: fdw
-- caller: superuser
-- mode: readonly
-- needs: dblink
-- must: a dblink connection that the caller has opened cannot be used, seen or closed
-- before:
SELECT dblink_connect('up', format('host=%s port=%s dbname=%s user=postgres', current_setting('unix_socket_directories'), current_setting('port'), current_database()))
-- attacks:
SELECT dblink_exec('up', 'INSERT INTO safe.breach VALUES (''dblink'', ''exec'')')
SELECT * FROM dblink('up', 'SELECT line FROM store.ledger') AS t (line text)
SELECT dblink_send_query('up', 'DELETE FROM store.ledger')
SELECT dblink_open('up', 'c', 'SELECT 1')
SELECT dblink_get_connections()
SELECT dblink_disconnect('up')
SELECT dblink_error_message('up')
SELECT dblink_cancel_query('up')
SELECT dblink_connect('host=127.0.0.1 user=postgres')
SELECT dblink_connect_u('x', 'user=postgres')
SELECT dblink_current_query()
-- after:
SELECT n FROM dblink('up', 'SELECT 5') AS t (n integer)
-- check:
SELECT judge.none_fine('attack') AND judge.output('after') = '5' AND judge.told() NOT LIKE '%HUSH%' AND NOT judge.breached()
