fuseplan mask causal -s 4 --lengths 2,3
