#!/bin/sh
# accuracy.sh FUSEPLAN: `accuracy` on small models of HuggingFace: its JSON is as its schema
# says, and it refuses what says nothing about accuracy.
set -eu
. "$(dirname "$0")/suite.sh"
families=$tests/data/families

# rows COLUMNS LENGTH...: rows.safetensors, of numbers that look like those of a layer's input
rows() {
  python3 - "$@" <<'END'
import json, math, struct, sys
columns, lengths = int(sys.argv[1]), [int(n) for n in sys.argv[2:]]
rows = b''.join(struct.pack('<f', math.sin(i * i)) for i in range(columns * sum(lengths)))
shapes = {'rows': ('F32', [sum(lengths), columns], 0, len(rows)),
          'lengths': ('I32', [len(lengths)], len(rows), len(rows) + 4 * len(lengths))}
head = json.dumps({n: {'dtype': t, 'shape': s, 'data_offsets': [b, e]} for n, (t, s, b, e) in shapes.items()}).encode()
with open('rows.safetensors', 'wb') as file:
    file.write(struct.pack('<Q', len(head)) + head + rows + struct.pack(f'<{len(lengths)}i', *lengths))
END
}

# calibrate MODEL LAYERS SCALE
calibrate() {
  jq -n --arg model "$1" --argjson layers "$2" --argjson scale "$3" '{amax: ($scale * 224), quantile: 1, rms: 1,
    scale: $scale} as $t | {version: 2, model: $model, model_bf16: $model,
    layers: [range($layers) | {x: $t, context: $t, norm1: $t, activation: $t}]}' >calibration.json
}

model() {
  cp "$families/$1/config.json" .
  gzip -dc "$families/$1/model.safetensors.gz" >model.safetensors
}

accuracy() { fuseplan accuracy --model . --input rows.safetensors "$@"; }

nothing() { # TEXT COMMAND...: is printed
  text=$1
  shift
  refused 2 "^fuseplan accuracy: .*$text" "$@"
  [ ! -s out ] || fail "printed something: $*"
}

model bert
rows 48 5 1 12 7
nothing 'no weights: drawn ones say nothing about accuracy' fuseplan accuracy --model config.json \
  --input rows.safetensors
nothing 'no sentences: fuseplan has no tokenizer' fuseplan accuracy --model .
nothing "an attention mask of a file is for one sequence length" accuracy -m file:rows.safetensors
calibrate 0000000000000000 2 0.015625
nothing 'of another model; calibrate the model' accuracy --calibration calibration.json
right=$(sed -n "s/.* are \([0-9a-f]\{16\}\): of another.*/\1/p" said)
calibrate "$right" 3 0.015625
nothing 'it has 3 layers, and the model 2' accuracy --calibration calibration.json
nothing 'which the command reads\|that the command reads' accuracy --events rows.safetensors

nothing '--precision: GEMMs in e4m3 need scales; add --calibration' accuracy --precision qkv,ffn1
calibrate "$right" 2 0.015625
as_schema calibration calibration.json
accuracy --calibration calibration.json --format json >out.json 2>said
as_schema accuracy out.json
grep -q 'sentences: 4, tokens: 25, layers: 2' said || fail "did not count the sentences"
grep -q warning said && fail "warned of saturation"
jq -e 'length == 9 and map(.gemms) == ["", "", "", "qkv", "out", "ffn1", "ffn2", "qkv out ffn1 ffn2",
  "qkv out ffn1 ffn2"] and all(.[]; .errors | length == 2) and .[0].errors[1] < 1e-6 and .[1].errors[1] < 2e-3 and
  .[7].errors[1] > 5 * .[1].errors[1] and .[7].errors[1] < 0.2' out.json >jq.txt || fail "errors"

# Beside bf16: errors of eight times those of fp16 come on top.
nothing 'expected fp16 or bf16' accuracy -t tf32
calibrate 0000000000000000 2 0.015625
nothing 'of another model; calibrate the model' accuracy -t bf16 --calibration calibration.json
calibrate "$(sed -n "s/.* are \([0-9a-f]\{16\}\): of another.*/\1/p" said)" 2 0.015625
jq -e 'map(.beside) == [null, null, null, "fp16", "fp16", "fp16", "fp16", "fp16", "fp16"]' out.json >jq.txt ||
  fail "what is beside"
accuracy -t bf16 --calibration calibration.json --format json -q >bf16.json
as_schema accuracy bf16.json
jq -e --slurpfile of out.json '.[:3] == $of[0][:3] and all(.[3:][]; .beside == "bf16") and
  (.[3:] | map(.errors)) != ($of[0][3:] | map(.errors)) and .[7].errors[1] < 0.2' bf16.json >jq.txt || fail "beside bf16"

# Scales that are too small saturate, which is said; without a calibration there is no fp8.
calibrate "$right" 2 0.0009765625
accuracy --calibration calibration.json --precision ffn1,qkv --format csv >out.csv 2>said
grep -q "warning: layer 0: 0\.[0-9]* of 'x' is beyond e4m3's range" said || fail "no warning of saturation"
[ "$(wc -l <out.csv)" -eq 11 ] || fail "CSV: not a line a row"
grep -q '^fp8,qkv ffn1,tensor,' out.csv || fail "not the precision that --precision names"
accuracy --events events >table.txt 2>said
grep -q '"finding the nearest sentences"' events || fail "says nothing while it compares sentences: $(cat events)"
grep -q 'fp8 is left out' said || fail "did not say why fp8 is missing"
[ "$(wc -l <table.txt)" -eq 4 ] || fail "not three rows"
rows 32 4
nothing 'rows have 32 columns, and the layers 48' accuracy

# Values beyond fp16's range: no error is a number, and none is left out.
rows 48 5 1 12 7
python3 - <<'END'
import json, struct
with open('model.safetensors', 'rb+') as file:
    size, = struct.unpack('<Q', file.read(8))
    head = json.loads(file.read(size))
    for name, value in ('bias', 65000), ('weight', 300):
        begin, end = head[f'encoder.layer.1.intermediate.dense.{name}']['data_offsets']
        file.seek(8 + size + begin)
        file.write(b''.join(struct.pack('<f', value * (i % 3 - 1 or 1)) for i in range((end - begin) // 4)))
END
accuracy --format json >out.json 2>said
as_schema accuracy out.json
grep -q 'warning: fp16: values of layer 1 are NaN or infinite' said || fail "no warning of overflow: $(cat said)"
jq -e 'map(.precision) == ["fp32", "fp16", "bf16"] and .[1].errors[0] < 2e-3 and .[1].errors[1] == null and
  .[1].cosine_mean == null and .[1].cosine_least == null and .[1].sentence_cosine == null and
  .[2].errors[1] != null' out.json >jq.txt || fail "overflow: $(cat out.json)"

# Layers of two kinds, gates, rotations and norms before.
model modernbert
columns=$(jq .hidden_size config.json)
# shellcheck disable=SC2046
rows "$columns" $(seq 1 12)
accuracy --format json -q >out.json
as_schema accuracy out.json
jq -e '.[0].errors[-1] < 1e-6 and .[1].errors[-1] < 5e-3' out.json >jq.txt || fail "errors of ModernBERT"
