fuseplan mask causal -s 4
fuseplan mask causal -s 100 | tail -n 1
