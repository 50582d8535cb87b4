printf 'not an array' >m.npy; fuseplan mask file:m.npy -s 4
