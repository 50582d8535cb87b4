fuseplan mask -s 4
