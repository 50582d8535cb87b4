fuseplan mask causal strided -s 4
