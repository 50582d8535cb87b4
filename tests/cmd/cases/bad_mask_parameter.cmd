fuseplan mask strided:t=0 -s 4
