fuseplan mask file:none.npy -s 4
