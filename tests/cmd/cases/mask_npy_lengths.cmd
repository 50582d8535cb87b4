fuseplan mask causal -s 4 -b 2 --lengths 2,4 --npy m.npy -q && od -A d -t x1 m.npy
