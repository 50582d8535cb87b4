#!/bin/sh
# e4m3.sh FUSEPLAN SOURCE RUNTIME FAKE_GPU [FLAG]: exported libraries whose GEMMs have operands of e4m3, on the stand-in
# of CUDA's runtime, compute the bits that the worker computes on a GPU whose driver is a fake; both have the oracle's
# operators for kernels.  What is not of one model is refused.
# shellcheck disable=SC2086 # variables that are not quoted are words
set -eu
source=$2 runtime=$3 fake=$4 sanitize=${5:--g0}
. "$source/tests/cmd/suite.sh"
. "$source/tests/cuda/build.sh"
use_fake_hopper "$fake"
export LD_LIBRARY_PATH="$root:$fake"

# draw NAME: a model of two layers: bert, whose weights are normal numbers, or dinov2, with gates and with norms before,
# whose matrices are in e4m3 with a scale for each row and one for their inputs.
draw() {
  mkdir "$1"
  python3 - "$1" <<'END'
import json, random, struct, sys
name, d = sys.argv[1], 128
bert = name == 'bert'
f = 256 if bert else 176
random.seed(1)
tensors = {}


def add(part, rows, columns=None, middle=0.0):
    values = [random.gauss(middle, 0.1) for _ in range(rows * (columns or 1))]
    if columns and not bert:
        codes = bytes(random.randrange(127) | random.randrange(2) << 7 for _ in values)
        tensors[part] = 'F8_E4M3', [rows, columns], codes
        scales = [random.uniform(5e-4, 1e-3) for _ in range(rows)]
        tensors[f'{part}_scale'] = 'F32', [rows, 1], struct.pack(f'<{rows}f', *scales)
        tensors[f'{part[:-6]}input_scale'] = 'F32', [], struct.pack('<f', 0.01)
    else:
        tensors[part] = 'F32', [rows, columns] if columns else [rows], struct.pack(f'<{len(values)}f', *values)


for i in range(2):
    at = f'encoder.layer.{i}.'
    qkv = 'attention.self' if bert else 'attention.attention'
    network = [('intermediate.dense', f, d), ('output.dense', d, f)] if bert else [
        ('mlp.weights_in', 2 * f, d), ('mlp.weights_out', d, f)]
    for part, rows, columns in [(f'{qkv}.{n}', d, d) for n in ('query', 'key', 'value')] + [
            ('attention.output.dense', d, d)] + network:
        add(f'{at}{part}.weight', rows, columns)
        add(f'{at}{part}.bias', rows)
    for part in ('attention.output.LayerNorm', 'output.LayerNorm') if bert else ('norm1', 'norm2'):
        add(f'{at}{part}.weight', d, middle=1.0)
        add(f'{at}{part}.bias', d)
    for k in () if bert else (1, 2):
        add(f'{at}layer_scale{k}.lambda1', d, middle=1.0)
if not bert:
    add('layernorm.weight', d, middle=1.0)
    add('layernorm.bias', d)
head, data = {}, b''
for part, (dtype, shape, text) in tensors.items():
    head[part] = {'dtype': dtype, 'shape': shape, 'data_offsets': [len(data), len(data) + len(text)]}
    data += text
text = json.dumps(head).encode()
with open(f'{name}/model.safetensors', 'wb') as file:
    file.write(struct.pack('<Q', len(text)) + text + data)
with open(f'{name}/config.json', 'w') as file:
    sizes = {'intermediate_size': f} if bert else {'mlp_ratio': 2, 'use_swiglu_ffn': True}
    json.dump({'model_type': name, 'hidden_size': d, 'num_attention_heads': 2, 'num_hidden_layers': 2,
               'hidden_act': 'gelu', 'layer_norm_eps': 1e-12, **sizes}, file)
END
}
draw bert

calibrate() { "$source/tests/cuda/scales.py" "$@" >calibration.json; }

# export_to WHERE OPTION...: of the BERT
export_to() {
  where=$1
  shift
  fuseplan export 48920 --target cuda --model bert -b 2 -s 40 --calibration calibration.json "$@" -q -o "$where"
}

# find_model TYPE: calibrates the BERT, whose fingerprint is what the first refusal says.
find_model() {
  calibrate 0123456789abcdef 2
  refused 2 'of another model; calibrate the model' export_to new --precision fp8 -t "$1"
  model=$(sed -n "s/.* are \([0-9a-f]\{16\}\): of another.*/\1/p" said)
  calibrate "$model" 2
}
find_model fp16
calibrate "$model" 3
refused 2 'it has 3 layers, and the model 2' export_to new --precision fp8
calibrate "$model" 2
refused 2 '--calibration has scales of e4m3; add --precision' export_to new
refused 2 'a library has the scales of its model; add --calibration' \
  fuseplan export 48920 --target cuda --model bert -b 2 \
  -s 40 --precision fp8 -o new
refused 1 'has no kernels for .* on sm_80 in e4m3' export_to new --precision fp8 --arch sm_80
[ ! -e new ] || fail "what was refused is written"

# same_bits TYPE PRECISION: the worker's bits, of x and weights from the same files.
same_bits() {
  FAKE_DTYPE=$1 where=$1_$2
  export_to "$where" --precision "$2" -t "$1"
  as_schema export "$where/manifest.json"
  jq -e --slurpfile c calibration.json --arg p "$2" '.plans[0].precision == $p and .calibration.sentences == 7 and
    .calibration.path == "calibration.json" and .calibration.model == $c[0].model and
    .calibration.scales == ($c[0].layers | map(map_values(.scale)))' "$where/manifest.json" >jq.txt ||
    fail "manifest"
  fuseplan bench 48920 --target cuda --model bert -b 2 -s 40 -t "$1" --calibration calibration.json --precision "$2" \
    --compiler nvcc --baseline none --dump "worker_$where" >out 2>said || fail "bench"
  build "$where" example
  "$where/run" --weights bert/model.safetensors --input "worker_$where/x.npy" --output y.npy >out ||
    fail "the example"
  cmp y.npy "worker_$where/y.npy" || fail "the library's bits are not the worker's: $where"
}
find_model bf16
same_bits bf16 fp8
find_model fp16
same_bits fp16 fp8
same_bits fp16 qkv,ffn2
cmp -s worker_fp16_fp8/y.npy worker_fp16_qkv,ffn2/y.npy && fail "two precisions give the same bits: nothing was compared"
jq '.layers[1].norm1 |= {amax: 50, quantile: 1, rms: 1, scale: 0.25}' calibration.json >other.json
fuseplan export 48920 --target cuda --model bert -b 2 -s 40 --calibration other.json --precision fp8 -q -o scaled
build scaled example
scaled/run --weights bert/model.safetensors --input worker_fp16_fp8/x.npy --output y.npy >out || fail "the example"
cmp -s y.npy worker_fp16_fp8/y.npy && fail "other scales give the same bits: nothing was compared"

# A map whose rows are dealt out is one of four dimensions, which the stand-in checks; its kernels read no map.
sed -i '0,/^\(    {false, [1-9].*\), false},$/s//\1, true},/' scaled/plan_*.c
grep -q '^    {false, [1-9].*, true},$' scaled/plan_*.c || fail "no map is dealt out"
build scaled example
scaled/run --weights bert/model.safetensors --input worker_fp16_fp8/x.npy --output dealt.npy >out || fail "a dealt map"
cmp y.npy dealt.npy || fail "other bits by a dealt map"

# Weights in e4m3 with their own calibration, gates, and norms before: the library computes the first norm itself, and
# what rounds to the number beside goes on.
draw dinov2
export FAKE_CHAIN=pre+silu+gate
gated='--target cuda --model dinov2 -b 2 -s 40 --precision fp8'
fuseplan export 48920 $gated --calibration calibration.json -q -o first 2>said && fail "scales of another model"
fuseplan export 48920 $gated --calibration weights -q -o first
fuseplan bench 48920 $gated --calibration weights --compiler nvcc --baseline none --dump worker_gated >out 2>said ||
  fail "bench of gates"
build first example
first/run --weights dinov2/model.safetensors --input worker_gated/x.npy --output y.npy >out || fail "the example of gates"
tail -c +129 worker_gated/y.npy >x
tail -c +129 y.npy >y
"$source/tests/cmd/near.sh" x y 0.1 || fail "the library of gates"
rm -r first
unset FAKE_CHAIN

# A program draws its inputs, and has the scales that the worker finds for them.
drawn='--target cuda -b 2 -s 40 -H 2 -W 64 --ffn 256 -L 2 --lengths 40,17'
same_as_bench() { # OPTION...
  fuseplan generate ${value:-48920} $drawn "$@" -q -o program --force
  as_schema manifest program/manifest.json
  fuseplan bench ${value:-48920} $drawn "$@" --compiler nvcc --baseline none --dump worker_program --force >out 2>said ||
    fail "bench of a program's plan: $(cat out)"
  build program
  program/run y.npy >out || fail "the program: $(cat out)"
  cmp y.npy worker_program/y.npy || fail "the program's bits are not the worker's: $*"
}
same_as_bench --precision fp8 --seed 5
value=48743 # a GEMM that several segments share merges heads
same_as_bench --precision qkv,ffn2
value=
FAKE_CHAIN=pre+silu+gate FAKE_DTYPE=bf16
export FAKE_CHAIN
same_as_bench --precision out,ffn1 --norm pre --activation silu --gate -t bf16
unset FAKE_CHAIN
FAKE_DTYPE=fp16

# Where cuBLASLt was the fastest, it runs GEMMs of e4m3, one of which stores e4m3.  Attention takes the largest tiles.
(
  rm libcublasLt.so*
  export CUDA_HOME="$fake" FUSEPLAN_DB="$root/products.db"
  fuseplan search $drawn --precision fp8 --space 48920..48920 --budget 1 --compiler nvcc >out 2>said ||
    fail "search: $(cat said)"
  change "$FUSEPLAN_DB" "DELETE FROM sample; DELETE FROM choice; DELETE FROM trial WHERE kind <> 'segment';
    UPDATE trial SET status = 'ok', median_ms = 1e-3, ci_low_ms = 1e-3, ci_high_ms = 1e-3
    WHERE schedule IN (SELECT id FROM schedule WHERE impl = 'library' OR knobs LIKE 'shape=192 %')"
  for FAKE_DTYPE in fp16 bf16; do
    change "$FUSEPLAN_DB" "UPDATE workload SET text = replace(text, 'fp16', '$FAKE_DTYPE')"
    same_as_bench --precision fp8 -t "$FAKE_DTYPE"
    jq -e '.segments | map(.implementation) ==
      ["library", "hopper_attention", "hopper_gemm", "library", "hopper_gemm"]' program/manifest.json >jq.txt ||
      fail "what runs a program's GEMMs: $(cat jq.txt)"
  done
)

# From a search on; make builds on the stand-in.
cat >"$PWD/make" <<END
#!/bin/sh
set -eu
while [ "\$1" != -C ]; do shift; done
at=\$2 source='$source' runtime='$runtime' sanitize='$sanitize'
cd '$root'
. "\$source/tests/cuda/build.sh"
build "\$at" example
mv "\$at/run" "\$at/example"
END
chmod +x make
calibrate "$model" 2
fuseplan ship --target cuda --model bert -b 1 -s 4 --precision qkv,ffn2 --calibration calibration.json --budget 1 \
  --compiler nvcc -o shipped --format json >ship.json 2>said || fail "ship: $(cat said)"
as_schema ship ship.json
jq -e 'map([.row, .allowed]) == [["unfused", 0.008], ["best", 0.03], ["library", 0.03]] and .[1].error > 0 and
  .[2].error == 0' ship.json >jq.txt || fail "ship: $(cat ship.json)"
jq -e '.plans[0].precision == "qkv,ffn2"' shipped/manifest.json >jq.txt || fail "what ship exports"

# A C program, whose weights have the fingerprint that the library's first refusal says.
workload='-b 2 -s 100 -m causal -H 2 -W 64 --ffn 256 -L 3'
calibrate 0123456789abcdef 3
for how in '' --packed '-t bf16'; do
  FAKE_DTYPE=fp16
  [ "$how" != '-t bf16' ] || FAKE_DTYPE=bf16
  fuseplan export 48920 --target cuda $workload --calibration calibration.json --precision fp8 $how -q -o first
  build first "$source/tests/cuda/codes.c"
  first/run y >out && fail "a library of another model runs"
  model=$(sed -n 's/.* and these are \([0-9a-f]\{16\}\): another model.*/\1/p' out)
  calibrate "$model" 3
  fuseplan export 48920 --target cuda $workload --calibration calibration.json --precision fp8 $how --force -q -o first
  build first "$source/tests/cuda/codes.c"
  first/run "y$how" >out || fail "the library: $(cat out)"
  rm -r first
  calibrate 0123456789abcdef 3
done
cmp y y--packed || fail "the packed library gives another result"
echo "all well"
