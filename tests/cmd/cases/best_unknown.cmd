# Where nothing is known, it exits 3 and names the workloads that are known.
fuseplan bench best --target cpu -b 1 -s 128 --db none.db; echo $?
known_db k.db
export FUSEPLAN_DB=k.db
fuseplan bench best --target cpu -b 1 -s 128; echo $?
fuseplan generate best --target cpu -b 1 -s 128 -o d; echo $?
fuseplan bench 1 --target cpu -b 1 -s 128 --baseline best -q; echo $?
fuseplan query --target cpu -b 1 -s 128; echo $?
fuseplan bench best; echo $?
fuseplan predict best; echo $?
fuseplan translate best; echo $?
ls
