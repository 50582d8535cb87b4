export FUSEPLAN_DB=none.db
fuseplan report
fuseplan report -o report.html
fuseplan report -b 1 -o report.html
fuseplan report out.html
sqlite3 empty.db 'CREATE TABLE t (a)'
fuseplan report -o report.html --db empty.db
echo '0000000000000000 1
0000000000000001 2' >times.txt
fuseplan train -q --data times.txt >/dev/null
fuseplan report -o report.html
ls
