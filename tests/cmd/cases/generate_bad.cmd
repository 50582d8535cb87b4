mkdir full; echo mine >full/notes
fuseplan generate 5 -b 1 -s 4 --target cpu -o full; echo $?
fuseplan generate 5 -b 1 -s 4 --target cpu -o full/notes; echo $?
fuseplan generate 5 -b 1 -s 4 --target cpu; echo $?
fuseplan generate -b 1 -s 4 --target cpu -o g; echo $?
fuseplan generate 70000 -b 1 -s 4 --target cpu -o g; echo $?
ls . full
