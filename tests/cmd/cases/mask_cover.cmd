fuseplan mask strided -s 512
