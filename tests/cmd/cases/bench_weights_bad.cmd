echo none >short
fuseplan bench 32800 -b 1 -s 4 --target cpu --weights no/such; echo $?
fuseplan bench 32800 -b 1 -s 4 --target cpu --weights short; echo $?
fuseplan bench 32800 -b 1 -s 4 --target cpu --weights short --fail-above 2; echo $?
fuseplan bench 32800 -b 1 -s 4 --target cpu --prefix bert; echo $?
rm short
ls
