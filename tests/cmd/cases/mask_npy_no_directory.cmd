fuseplan mask causal -s 4 --npy none/m.npy
