fuseplan mask causal -s 4 --npy m.npy -q >/dev/null; fuseplan mask file:m.npy -s 5
head -c 66000 /dev/zero >large.npy
fuseplan mask file:large.npy -s 4
