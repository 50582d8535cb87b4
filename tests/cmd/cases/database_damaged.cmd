# A database that another program filled with values that no fuseplan stores, and one with flipped bits.
known_db k.db
sqlite3 k.db "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;
  UPDATE trial SET plan = 9999999 WHERE id = (SELECT max(id) FROM trial WHERE kind = 'final'); VACUUM"
fuseplan compare k.db k.db; echo $?
fuseplan db export --db k.db >out; echo $?
sqlite3 k.db "UPDATE workload SET layers = 4000000000 WHERE batch = 2; UPDATE trial SET sample_count = -7 WHERE id = 1; VACUUM"
fuseplan db list --db k.db >listed; code=$?
sed 's/2[0-9]*-[0-9]*-[0-9]*/on its day/' listed; echo $code
fuseplan db check --db k.db; echo $?
known_db f.db
printf '\377\377' | dd of=f.db bs=1 seek=20490 conv=notrunc 2>/dev/null
fuseplan db check --db f.db; echo $?
fuseplan db list --db f.db; echo $?
