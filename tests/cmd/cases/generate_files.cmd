fuseplan generate 41115 -b 1 -s 4 -H 1 -W 4 -L 1 -m causal --target cpu -q -o g/
ls
ls g | grep -v '\.h$'
cat g/plan_b1_s4.c g/plans.c
head -n 5 g/manifest.json
# A plan of more segments in its place.
fuseplan generate 43690 -b 1 -s 4 -H 1 -W 4 -L 1 -m causal --target cpu -o g
ls g | grep -c '^segment_'
