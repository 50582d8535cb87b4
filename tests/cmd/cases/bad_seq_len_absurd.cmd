fuseplan mask causal -s 100000
