fuseplan mask causal -s 3 --npy m.npy >/dev/null && od -A n -t x1 -j 128 m.npy && fuseplan mask file:m.npy -s 3 --format json
