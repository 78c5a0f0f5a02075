-- class: text
-- caller: superuser
-- mode: role
-- must: byte order marks, zero widths, odd spaces and foreign quotes hide nothing and break nothing
-- attacks:
RESET ROLE
SET​ROLE postgres
“RESET ROLE”
RESET ROLE /* 'x' */ --
RESET	ROLE
reSET roLE
RESET "role"
RESET U&"rol\0065"
ＲＥＳＥＴ ＲＯＬＥ
SELECT 1 /*! RESET ROLE */; RESET ROLE
{"statement": "RESET ROLE"}
```sql
${prompt}
$1
SELECT $1
SELECT :x
?
-- check:
SELECT judge.none_fine('attack') AND NOT judge.breached()
