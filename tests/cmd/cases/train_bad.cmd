printf '100010100000010 54.5\n' >a.txt; fuseplan train --data a.txt --db m.db; echo $?
printf '1000101000000101 fast\n' >a.txt; fuseplan train --data a.txt --db m.db; echo $?
printf '1000101000000101 5\n' >a.txt; fuseplan train --data a.txt --db m.db; echo $?
fuseplan train --data none.txt --db m.db; echo $?
fuseplan train; echo $?
fuseplan train --data a.txt -b 1 -s 4; echo $?
fuseplan train --data a.txt --target cpu; echo $?
fuseplan train -m causal; echo $?
fuseplan train -b 1 -s 4 --name other; echo $?
fuseplan train -b 1 -s 4 --db none.db; echo $?
fuseplan predict 5 -m causal; echo $?
fuseplan predict 5 -b 1 -s 4 --name other; echo $?
fuseplan predict 5 --db none.db; echo $?
fuseplan predict 65536; echo $?
fuseplan predict; echo $?
ls
