fuseplan mask causal -s 0
