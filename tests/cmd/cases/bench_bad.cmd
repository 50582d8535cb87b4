fuseplan bench -b 1 -s 4; echo $?
fuseplan bench 65536 -b 1 -s 4; echo $?
fuseplan bench 41115; echo $?
fuseplan bench 1 2 -b 1 -s 4 --dump d; echo $?
fuseplan bench 1 -b 1 -s 4 --fail-above 0; echo $?
fuseplan bench 1 -b 1 -s 4 -m stridd; echo $?
fuseplan bench 1 -b 1 -s 4 --trace no/such; echo $?
fuseplan bench 1 -b 1 -s 4 --trace .; echo $?
ls
