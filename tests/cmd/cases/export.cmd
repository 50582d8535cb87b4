# A folder for C programs.  Several sizes are one library.
small='-H 1 -W 4 -L 1 -m causal --target cpu'
fuseplan export 41115 -b 1 -s 4 $small -o lib; echo $?
ls lib
head -n 12 lib/encoder.h
sed -n '/^OBJECTS/,/^all/p' lib/Makefile
jq -c '.library, (.plans[] | [.value, .workload.seq_len, .measured_on, .measured_with, (.segments | length)])' lib/manifest.json
# Whatever else the name would clash with, its functions do not.
fuseplan export 43690 -b 1 -s 4 $small -q --name bert -o bert; echo $?
ls bert | grep bert; grep -c encoder bert/*.[ch] | grep -v ':0$'
# What is not ours stays, also by a name that some other output builds; what make built goes.
echo mine | tee lib/libmine.a lib/libmine.so lib/libmine.so.1 lib/libencoder.1 lib/plan >lib/notes
touch lib/libencoder.a lib/libencoder.so lib/libencoder.so.1 lib/example lib/library.o
fuseplan export 41115 -b 1 -s 4 $small -q -o lib; echo $?
fuseplan export 41115 -b 1 -s 4 $small -q -o lib --force; echo $?
ls lib | grep -e '^lib.*\.[ao1]' -e '\.so' -e '^plan$' -e notes -e '^example$'
fuseplan export 41115 -b 1 -s 4 $small -q -o no --name Bert; echo $?
# Nor is it the name of something else that the library or its users need.
for name in plan launch threads run int class lambda math pthread linux m test torch json abi int64_t; do
  fuseplan export 41115 -b 1 -s 4 $small -q -o no --name $name; echo $?
done
fuseplan export best -b 1 -s 4 $small -q -o no --db none.db; echo $?
known_db k.db
fuseplan export best --target cpu -b 1,2 -s 128 -m causal -q -o no --db k.db; echo $?
fuseplan export best --target cpu -b 1 -s 128 -m causal -q -o best --db k.db; echo $?
grep -A 1 workload best/plan_b1_s128.c
jq -c '.plans[] | [.measured_on, .measured_with]' best/manifest.json
ls
# Several sizes are one library: a plan each, a segment's source once.
fuseplan export 41115 -b 2,1 -s 8,4 $small -q -o sizes; echo $?
ls sizes | grep -c '^segment_'; sed -n '/^const struct plan/,/^}/p' sizes/plans.c
jq -c '.plans[].workload | [.batch, .seq_len]' sizes/manifest.json
