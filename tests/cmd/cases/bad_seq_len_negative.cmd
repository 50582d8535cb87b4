fuseplan mask causal -s -4
