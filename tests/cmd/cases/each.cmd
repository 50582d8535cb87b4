# Lists of batch sizes and sequence lengths mean each of them.
known_db k.db
export FUSEPLAN_DB=k.db
q='fuseplan query --target cpu -m causal -q'
$q -b 1 -s 128,128 --format json | head -n 1
$q -b 1,2 -s 128,64 --format json | grep -c '"best": {'; echo
$q -b 1,2 -s 128,64 --format csv | cut -d, -f1-5
$q -b 1,4 -s 128 | grep 'batch\|best plan'
$q -b 1,2 -s 128,70000; echo $?
$q -b 1,,2 -s 128; echo $?
fuseplan generate 5 -b 1,2 -s 8 -o d; echo $?
fuseplan bench 5 -b 1 -s 8,16 --dump d; echo $?
# The mask of the second is refused before the first is measured.
fuseplan mask causal -s 8 --npy m.npy -q >/dev/null
fuseplan search -b 1 -s 8,16 -m file:m.npy --target cpu; echo $?
# Notes say of which size they are; what holds for all is said once.
fuseplan export 5 -b 1,2 -s 16 -H 1 -W 4 -L 1 --target cpu -o g
fuseplan export 5 -b 1,512 -s 65536 --target cpu -o h; echo $?
