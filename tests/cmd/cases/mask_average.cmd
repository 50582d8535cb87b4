fuseplan mask causal -s 8 -b 3 --avg-seq-len 4 --seed 1 --format json
