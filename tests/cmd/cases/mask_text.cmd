fuseplan mask strided -s 12
