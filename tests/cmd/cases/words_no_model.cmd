known_db k.db
fuseplan predict 5 --db k.db; echo $?
fuseplan predict 5 --db k.db --target cpu -b 1 -s 128 -m causal; echo $?
fuseplan predict 5 --db k.db --target cpu -b 1 -s 9; echo $?
