fuseplan mask strided
