fuseplan mask causal -s 4 --lengths 4 --avg-seq-len 2
