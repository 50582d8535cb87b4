# Needs neither GPU nor compiler.
fuseplan generate 16380 -b 1 -s 4 -H 1 -W 16 --ffn 64 -L 1 -m causal --target cuda -t bf16 -q -o g
ls g
cat g/plan_b1_s4.c g/plans.c g/drawn.h
sed -n '/^OBJECTS/,/^plan:/p' g/Makefile
grep -e target -e eps g/manifest.json
jq -c '.measured_on, .segments[1] | del(.function?)' g/manifest.json
# Sizes that the kernels do not have.
fuseplan generate 5 -b 1 -s 4 -W 48 --target cuda -o h; echo $?
fuseplan generate 5 -b 1 -s 4 --ffn 100 --target cuda -o h; echo $?
ls
