# An estimate needs three workloads with layers of the same sizes.  It creates no database.
fuseplan search --target cpu -b 1 -s 64 --rigor estimate --db none.db; echo $?
known_db k.db
fuseplan search --target cpu -b 1 -s 64 --rigor estimate --db k.db; echo $?
ls
