fuseplan bench -b 1 -s 4; echo $?
fuseplan bench 65536 -b 1 -s 4; echo $?
fuseplan bench 41115; echo $?
fuseplan bench 1 2 -b 1 -s 4 --dump d; echo $?
fuseplan bench 1 -b 1 -s 4 --fail-above 0; echo $?
fuseplan bench 1 -b 1 -s 4 -m stridd; echo $?
fuseplan bench 1 -b 1 -s 4 --trace no/such; echo $?
fuseplan bench 1 -b 1 -s 4 --trace .; echo $?
fuseplan bench 5 -b 1 -s 4 --baseline 43690,70000; echo $?
fuseplan bench 41115 -b 1 -s 4 --baseline 1,2,3,4,5,6,7,8,9,10 2>said; echo $?; tail -n 1 said; rm said
ls
