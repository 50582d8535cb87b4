# A query makes no database, and exits 3 where nothing is known.
fuseplan query -b 1 -s 4 --db none.db
echo $?
ls
