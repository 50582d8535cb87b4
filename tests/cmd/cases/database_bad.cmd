echo 'this is no database, whatever it may be called' >text.db
fuseplan db info --db text.db; echo $?
fuseplan db info --db .; echo $?
fuseplan db info --db none.db; echo $?
fuseplan train --data /dev/null --db /proc/none/x.db; echo $?
fuseplan db info --db text.db/x.db; echo $?
