fuseplan mask strided:q=1 -s 4
