# What is wrong with an option, and where it belongs.
fuseplan translate 5 --budget 1; echo $?
fuseplan translate 5 --dump=d; echo $?
fuseplan doctor -o x; echo $?
fuseplan query --he 3; echo $?
fuseplan query --seq 3 --ba=1 --head; echo $?
fuseplan search --time-limt 3; echo $?
