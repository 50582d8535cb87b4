fuseplan mask causal -s 4 --npy m.npy -q >/dev/null; head -c 135 m.npy >t.npy; fuseplan mask file:t.npy -s 4
