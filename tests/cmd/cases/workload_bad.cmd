fuseplan query -b 0 -s 4; echo $?
fuseplan query -b -3 -s 4; echo $?
fuseplan query -b 1 -s 4 -H 0; echo $?
fuseplan query -b 1 -s 4 -W 100000; echo $?
fuseplan query -b 1 -s 4 -L 0; echo $?
fuseplan query -b 60000 -s 4096; echo $?
for eps in 0 1e-300; do fuseplan query -b 1 -s 4 --eps $eps; echo $?; done
fuseplan query -b 1 -s 4 --dtype fp64; echo $?
fuseplan query -b 1 -s 4 --dtype fp16 --target cpu; echo $?
fuseplan query -b 1 -s 4 --target tpu; echo $?
fuseplan query -b 1 -s 4 --target cpu:1; echo $?
fuseplan query -b 1; echo $?
fuseplan query; echo $?
