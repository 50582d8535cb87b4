fuseplan mask causal -s 4 --npy m.npy -q >/dev/null; fuseplan mask file:m.npy -s 5
