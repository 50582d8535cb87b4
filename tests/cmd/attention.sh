#!/bin/sh
# attention.sh FUSEPLAN FAKE_CUDA: `bench --op attention` on layers that take microseconds: its
# figures follow from the mask and the time, it stores nothing, and its JSON is as its schema says.
set -eu
. "$(dirname "$0")/suite.sh"
fake=$2
layer='--target cpu -H 2 -W 4 -L 1'

# words of $layer are options
# shellcheck disable=SC2086
attention() { fuseplan bench --op attention $layer "$@"; }

attention -b 1,2 -s 40,128 -m strided --format json >out.json 2>said
as_schema bench-attention out.json
jq -e 'map([.batch, .seq_len]) == [[1, 40], [1, 128], [2, 40], [2, 128]]' out.json >jq.txt || fail "not a row a workload"

# The figures are those of `mask`.
for i in 0 1 2 3; do
  b=$(jq ".[$i].batch" out.json)
  s=$(jq ".[$i].seq_len" out.json)
  fuseplan mask strided -b "$b" -s "$s" --format json >mask.json
  jq -e --slurpfile mask mask.json "def near(x; y): (x / y - 1) | fabs < 1e-6;
    .[$i] as \$row | \$mask[0] as \$mask | (2 * (\$mask.blocks_full + \$mask.blocks_partial)) as \$steps |
    \$row.mask == \$mask.mask and \$row.kept == \$mask.kept and \$row.block_steps == \$steps and
    \$row.flops == 4 * 4 * 2 * \$mask.kept and \$row.executed_flops == 4 * 4 * 64 * 64 * \$steps and
    near(\$row.tflop_per_s; \$row.flops / \$row.median_us / 1e6) and
    near(\$row.executed_tflop_per_s; \$row.executed_flops / \$row.median_us / 1e6) and
    near(\$row.us_per_step; \$row.median_us * \$row.units / \$steps)" out.json >jq.txt ||
    fail "batch $b, seq-len $s: not the figures of mask"
done

# A table, and CSV.
attention -b 2 -s 128 -m strided >table.txt 2>said
grep -q '^strided:t=11  *2  *128  *' table.txt || fail "no table"
attention -b 2 -s 40 -m strided -q --format csv >out.csv
[ "$(wc -l <out.csv)" -eq 2 ] || fail "CSV: not a line a workload"
awk -F, 'NF != 22 { exit 1 }' out.csv || fail "CSV: not as many fields in each line"
grep -q '^batch,seq_len,mask,' out.csv || fail "CSV: a line does not begin with the sizes, as in other commands"

# Where no workload fits into memory there is no table.
expect 1 attention -b 64,65 -s 65536
[ ! -s out ] || fail "a table without rows"
grep -q '^fuseplan bench: batch 64, seq-len 65536: .* of memory' said || fail "did not say which workload is too large"

# A CPU has one schedule: it needs no search.  Nothing is stored.
grep -q 'default schedule' said && fail "called the only schedule the default one"
[ ! -e "$FUSEPLAN_DB" ] || fail "it made a database"
fuseplan bench 48981 -b 1 -s 40 -m strided --target cpu -H 2 -W 4 -L 1 --baseline none -q --db known.db >bench.txt
sqlite3 known.db .dump >before.sql
attention -b 1,2 -s 40 -m strided --db known.db --format json >out.json 2>said
jq -e 'map(.schedule_known) == [true, false]' out.json >jq.txt || fail "not the workload that is stored"
sqlite3 known.db .dump | cmp -s - before.sql || fail "it stored something"
change known.db "UPDATE target SET device = 'an abacus'"
attention -b 1 -s 40 -m strided --db known.db >table.txt 2>said
grep -q "the schedule is the fastest of those measured on 'an abacus'" said || fail "did not say where"

# On a GPU of sm_90, whose driver is a fake: its kernels write nothing.
gpu() {
  code=0
  (
    use_fake_gpu "$fake" nothing
    FAKE_GPU=hopper fuseplan bench "$@" -b 2 -s 256 -m fixed --target cuda --compiler nvcc -H 2 -L 1 --ffn 64 --db gpu.db
  ) >out.json 2>said || code=$?
}
gpu --op attention --format json
[ "$code" -eq 3 ] || fail "exit $code for a wrong result"
tuning='search -b 2 -s 256 -m fixed -H 2 -L 1 --ffn 64 --target cuda --db gpu.db'
grep -q "^fuseplan: batch 2, seq-len 256: this is the default schedule, .* 'fuseplan $tuning' finds a faster one$" said ||
  fail "did not say how to tune"
fuseplan mask fixed -b 2 -s 256 --format json >mask.json
check_gpu() {
  as_schema bench-attention out.json
  jq -e --slurpfile mask mask.json --argjson known "$1" --arg schedule "$2" "\$mask[0] as \$mask | .[0] |
    .schedule_known == \$known and (.schedule | startswith(\$schedule)) and .units == 4 and .block_steps == 2 * ($3)" \
    out.json >jq.txt || fail "on a GPU: not the steps of the schedule '$2'"
}
check_gpu false shape= "\$mask.blocks_full + \$mask.blocks_partial"
# the rows that a CPU gave, as if this GPU had given them
sqlite3 known.db ".backup gpu.db"
change gpu.db "UPDATE target SET kind = 'cuda', device = 'Fake GPU', capability = 'sm_90'; UPDATE workload SET
  text = 'b=2 s=256 h=2 w=64 f=64 l=1 eps=1e-05 dtype=fp16 lengths=full mask=fixed:t=16'"
for cover in plain ordered; do
  change gpu.db "UPDATE schedule SET impl = 'hopper_attention', knobs = 'shape=128 cover=$cover'
      WHERE segment IN (SELECT id FROM segment WHERE first_op = 1 AND last_op = 6)"
  gpu --op attention --format json
  grep -q 'default schedule' said && fail "called a stored schedule the default one"
  [ $cover = plain ] || check_gpu true "shape=128 cover=ordered" "\$mask.cover_blocks"
  [ $cover = ordered ] || check_gpu true "shape=128 cover=plain" "\$mask.blocks_full + \$mask.blocks_partial"
done

# The segment's files.
attention -b 2 -s 40 -m strided --lengths 40,13 -q --dump arrays >table.txt
(cd arrays && ls) >files
printf '%s\n' layer0.bqkv.npy mask.npy merge_heads.npy qkv_gemm.npy workload.json | cmp -s - files || fail "--dump: other files"
jq -e '.lengths == [40, 13] and .heads == 2' arrays/workload.json >jq.txt || fail "--dump: no lengths"

# A kernel that does not run.
cat >failing_cc <<'END'
#!/bin/sh
for file; do case $file in *.c) grep -q 'Operators 1-6 ' "$file" && exit 1 ;; esac; done
exec cc "$@"
END
chmod +x failing_cc
mkdir fresh
code=0
FUSEPLAN_CACHE="$root/fresh" FUSEPLAN_CC="$root/failing_cc" attention -b 1 -s 40 --format json >out.json 2>said ||
  code=$?
[ "$code" -eq 3 ] || fail "exit $code for a kernel that is not built"
as_schema bench-attention out.json
jq -e '.[0] | .median_us == null and (.reason | length) > 0 and .block_steps == 2' out.json >jq.txt || fail "no reason"
grep -q '^fuseplan bench: ops 1-6 alone: ' said || fail "no message"
