fuseplan mask causal -s 4 --lengths 5
