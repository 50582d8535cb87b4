#!/bin/sh
# Everything that needs a GPU, part by part; ends with a table of the parts.
#   device.sh BIN [PART...]   BIN: the directory of fuseplan, fuseplan-worker and cuda_*
# Without a PART all of $usual.  What is built and measured is kept where FUSEPLAN_CACHE and FUSEPLAN_DB say.  Those of
# $filling run beside those of $idle, of which none judges a time, and then the others one by one.
# shellcheck disable=SC2086 # workloads, plans and options are words
set -u
usual='doctor build verify values far_means dependent environments generated export repeat stamps search faults memory
  sanitize'
named='sanitize_families spaces attention layers errors packed python python_times traffic rates grid'
filling='verify sanitize sanitize_families' # each all cores
idle='doctor build values far_means dependent environments'
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "$1" && pwd)
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
export PATH FUSEPLAN_CACHE="${FUSEPLAN_CACHE:-$scratch/cache}" FUSEPLAN_DB="${FUSEPLAN_DB:-$scratch/db}" FUSEPLAN_CONFIG=off
small='-b 1 -s 128 -m causal' large='-b 8 -s 512 -m strided'

# A command, shown with the seconds that it takes.
say() {
  printf '\n$ %s\n' "$*" >&2
  since=$(date +%s)
  code=0
  "$@" || code=$?
  echo "# $(($(date +%s) - since)) s" >&2
  return $code
}

# That of the GPU.
capability() {
  nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1
}

doctor() {
  say nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv &&
    say "$bin/fuseplan" doctor
}

# Every segment by every implementation, from an empty cache, by each compiler.
build() {
  failed=0
  for compiler in nvrtc nvcc; do
    say env FUSEPLAN_CACHE="$scratch/$compiler" timeout 120 \
      "$bin/cuda_segments" -b -C $compiler fp16 1 128 causal || failed=1
  done
  return $failed
}

# Values from all 65536, verified end to end.
values() {
  say timeout 240 "$bin/cuda_plans" -L 2 -s 1 -a 60 fp16 2 100 bigbird &&
    say timeout 240 "$bin/cuda_plans" -L 2 -s 2 fp16 1 333 sliding &&
    say timeout 240 "$bin/cuda_plans" -L 2 -s 3 -n 40 -a 110 -H 4 -F 256 fp16 400 125 full # kernels go backwards
}

# Layernorms of rows whose mean is some 50 (12-14) or 250 (7-9) times the standard deviation, by every schedule of
# hopper_gemm.  In fp16: what is lost without the second pass for such rows is within bf16's tolerance.
far_means() {
  say python3 "$here/far_means.py" "$scratch/far.safetensors" || return 1
  for shape in '1 64' '1 333' '3 1000'; do
    say timeout 240 "$bin/cuda_segments" -w "$scratch/far.safetensors" -i hopper_gemm -s 7-9,12-14 fp16 $shape full ||
      return 1
  done
}

environments() {
  say env FUSEPLAN_LOCK_DIR="$scratch" timeout 500 "$here/../cmd/environments.sh" "$bin/fuseplan" cuda
}

# Twenty plans, timed by two processes one after the other; nineteen must differ by at most 1 %.
repeat() {
  plans='43690 41115 40804 40544 32768 49151 36864 40960 41120 41130 41140 41200 41300 41400 41500 42000 42500 43000
    43500 44000'
  for n in 1 2; do
    say timeout 200 "$bin/fuseplan" bench --target cuda $small --baseline none --format csv $plans \
      >"$scratch/times.$n" || return 1
  done
  awk -F, '
    FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    NR == FNR { first[$1] = $at["median_ms"]; next }
    {
      apart = ($at["median_ms"] / first[$1] - 1) * 100
      apart = apart < 0 ? -apart : apart
      n++; near += apart <= 1; if (apart > most) most = apart
      printf "%s %s ms %s ms, %.2f %% apart\n", $1, first[$1], $at["median_ms"], apart
    }
    END {
      printf "%d of %d plans at most 1 %% apart, the most %.2f %%\n", near, n, most
      exit n < 20 || near < 19
    }' "$scratch/times.1" "$scratch/times.2"
}

# The phases of a layer's kernels add up to its time with stamps, which is not far from the time without.
stamps() {
  for plan in '48920 -b 1 -s 16' "48920 $small" '41115 -b 2 -s 128 -t bf16'; do
    say timeout 100 "$bin/fuseplan" bench $plan --target cuda --baseline none --stamps --format json >"$scratch/stamps" ||
      return 1
    python3 - "$scratch/stamps" <<'END' || return 1
import json, sys
found = json.load(open(sys.argv[1]))[0]['stamps']
if found['reason']:
    sys.exit('FAILED: ' + found['reason'])
phases = sum(kernel['sum_us'] or 0 for kernel in found['kernels'])
plain, stamped = found['plain_us_per_layer'], found['stamped_us_per_layer']
print(f'phases {phases:.1f} us a layer, {stamped:.1f} with stamps, {plain:.1f} without')
if not (0.7 < phases / stamped < 1.1 and 0.95 < stamped / plain < 1.6):
    sys.exit('FAILED: they do not fit')
if any((kernel['hand_over_us'] or 0) < -0.4 for kernel in found['kernels']):  # clocks are read to some 0.2 us
    sys.exit('FAILED: a kernel knows of an end before it')
END
  done
}

search() {
  say timeout 200 "$bin/fuseplan" search --target cuda $small --budget 64 --time-limit 100 --seed 1 &&
    say timeout 200 "$bin/fuseplan" search --target cuda $large --budget 64 --time-limit 120 --seed 1
}

# A generated program, built with nvcc alone, computes what fuseplan does: with cuBLASLt, without (40544), with
# lengths, and on Hopper GPUs with GEMMs in e4m3, and by kernels that go backwards.
generated() {
  program=$scratch/program
  for plan in 41115 40544 '41115 --lengths 100,37' '48920 --precision fp8' '48920 -t bf16 --precision fp8' \
    '48920 -b 400 -s 125 -H 4 --ffn 256' '48920 -b 400 -s 125 -H 4 --ffn 256 --avg-seq-len 110'; do
    case $plan$(capability) in
    *fp89.0*) ;;
    *fp8*) continue ;;
    esac
    value=${plan%% *}
    workload="--target cuda -b 2 -s 100 -m strided -L 3 ${plan#?????}"
    rm -rf "$program" "$scratch/arrays"
    say "$bin/fuseplan" bench $value $workload -q --baseline none --compiler nvcc \
      --dump "$scratch/arrays" &&
      say "$bin/fuseplan" generate $value $workload -q -o "$program" &&
      say env -u FUSEPLAN_CACHE PATH="$(dirname "$(command -v nvcc)"):/usr/bin:/bin" \
        make -s -j "$(nproc)" -C "$program" &&
      say "$program/plan" "$program/y.npy" &&
      say cmp "$program/y.npy" "$scratch/arrays/y.npy" || return 1
  done
}

# library LIB OPTION...: exports a library of plan 41115 and builds it.
library() {
  lib=$1 && shift
  say "$bin/fuseplan" export 41115 --target cuda "$@" -q -o "$lib" && say make -s -j "$(nproc)" -C "$lib"
}

# with_library LIB PROGRAM: builds tests/PROGRAM.c on the exported library in LIB, as LIB/PROGRAM's last name.
with_library() {
  toolkit=$(dirname "$(command -v nvcc)")/.. to=$1/$(basename "$2")
  say cc -std=gnu17 -O1 -I"$1" -I"$here/../cmd" -I"$toolkit/include" -c -o "$to.o" "$here/../$2.c" &&
    say nvcc -o "$to" "$to.o" "$1/libencoder.a" -lcublasLt -Xlinker -rpath="$toolkit/lib64"
}

# sanitized PROGRAM ARGUMENT...: compute-sanitizer itself crashes in one run of five, in cuGraphLaunch, and found nothing.
sanitized() {
  log=$scratch/sanitizer
  command -v compute-sanitizer >/dev/null || {
    echo "FAILED: there is no compute-sanitizer on PATH"
    return 1
  }
  for _ in 1 2 3 4 5; do
    found=0
    say compute-sanitizer --error-exitcode 1 "$@" >"$log" 2>&1 || found=$?
    cat "$log"
    if ! grep -q "process didn't terminate successfully" "$log" || ! grep -q 'ERROR SUMMARY: 0 errors' "$log"; then
      break
    fi
  done
  return $found
}

# Of GEMMs in e4m3, on Hopper GPUs.  The library's first refusal says the fingerprint of the weights, with which it is
# exported again.
exported_e4m3() {
  for how in '' --packed '-t bf16'; do
    model=0123456789abcdef lib=$scratch/e4m3${how#-t }
    for attempt in refused right; do
      "$here/scales.py" $model 3 >"$scratch/scales" &&
        say "$bin/fuseplan" export 48920 --target cuda -b 2 -s 100 -m causal -H 2 -W 64 --ffn 256 -L 3 \
          --precision fp8 --calibration "$scratch/scales" $how -q --force -o "$lib" &&
        say make -s -j "$(nproc)" -C "$lib" && with_library "$lib" cuda/codes || return 1
      if [ $attempt = right ]; then
        say "$lib/codes" "$lib/y" || return 1
      else
        model=$("$lib/codes" "$lib/y" | sed -n 's/.* and these are \([0-9a-f]*\): another model.*/\1/p')
      fi
    done
    sanitized "$lib/codes" "$lib/y" || return 1
  done
}

# Attention by tiles of joined rows, on Hopper GPUs, and layernorms of rows whose tiles hold several sequences: the
# schedules that bench stores become these, which bench then verifies.  With lengths rows are packed.
exported_joined() (
  export FUSEPLAN_DB="$scratch/joined.db"
  for lengths in '' 37,30; do
    plan="48920 --target cuda -b 2 -s 100 ${lengths:+--lengths $lengths} -H 2 -W 64 --ffn 256 -L 3"
    place=$scratch/joined$lengths
    rm -f "$FUSEPLAN_DB"
    say "$bin/fuseplan" bench $plan -q --baseline none && python3 - "$FUSEPLAN_DB" <<'END' || return 1
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("UPDATE schedule SET knobs = 'shape=64 cover=joined' WHERE impl = 'hopper_attention'")
db.execute("UPDATE schedule SET knobs = 'tile=64x64 split=1 norm=cluster' WHERE impl = 'hopper_gemm' AND segment IN"
           ' (SELECT id FROM segment WHERE last_op IN (9, 14))')
db.execute('VACUUM')
END
    say "$bin/fuseplan" bench $plan -q --baseline none && say "$bin/fuseplan" export $plan -q -o "$place" &&
      grep -q '\.most = ' "$place"/plan_*.c && say make -s -j "$(nproc)" -C "$place" && with_library "$place" cuda/joined &&
      say "$place/joined" || return 1
    sanitized "$place/joined" direct || return 1
  done
)

# Embeddings by libraries of each type.
embedded() {
  for type in fp32 fp16 bf16; do
    library "$scratch/embedded_$type" -t $type -b 2 -s 100 -H 2 -W 64 -L 3 && with_library "$lib" cmd/embed &&
      say "$lib/embed" || return 1
    sanitized "$lib/embed" || return 1
  done
}

# An exported library in a C program: errors, lengths, threads that share handles.  Packed it gives the same.
exported() {
  for packed in '' --packed; do
    library "$scratch/exported$packed" -t fp32 -b 2 -s 100 -m causal -H 2 -W 16 -L 3 ${packed:+$packed} &&
      say "$lib/example" && with_library "$lib" cmd/refused && say "$lib/refused" &&
      with_library "$lib" cmd/library && say "$lib/library" "$lib/y" || return 1
    sanitized "$lib/library" "$lib/y" direct || return 1
  done
  say "$here/../cmd/near.sh" "$scratch/exported/y" "$scratch/exported--packed/y" 1e-5 && embedded || return 1
  case $(capability) in
  9.0) exported_e4m3 && exported_joined ;;
  '') return 1 ;;
  esac
}

# Packed plans, each verified before it is timed, by cuBLASLt and without it.
packed() {
  plans='41115 43690 32768 45738 36507'
  say "$bin/fuseplan" bench $plans -b 3 -s 333 -L 2 --lengths 5,333,100 -m causal --baseline 41115 -q &&
    say "$bin/fuseplan" bench $plans -b 5 -s 97 -L 2 --avg-seq-len 50 -m sliding -t fp32 --baseline 41115 -q &&
    say "$bin/fuseplan" bench $plans -b 4 -s 256 -H 16 -L 2 --avg-seq-len 150 -m strided -t bf16 \
      --baseline 41115 -q || return 1
  for s in 128 256 512 1024; do
    say "$bin/fuseplan" bench 41115 36507 --padded -b 16 -s $s --avg-seq-len $((s * 6 / 10)) -m full \
      --baseline 41115,36507 -q || return 1
  done
}

# Attention by its fastest schedule, on Hopper GPUs one of hopper_attention.cuh, computed again by PyTorch in float64.
attention() {
  n=0
  set -- "-b 2 -s 333 -m strided --avg-seq-len 200" "-b 1 -s 1001 -m fixed -t bf16" \
    "-b 3 -s 517 -m document" "-b 2 -s 768 -m dilated:w=40,d=3" "-b 2 -s 259 -m longformer -H 6 -W 128"
  for workload; do
    n=$((n + 1))
    say timeout 60 "$bin/fuseplan" search --target cuda $workload -L 1 --time-limit 30 -q >"$scratch/search" &&
      say "$bin/fuseplan" bench --op attention --target cuda $workload -L 1 -q --dump "$scratch/attention$n" \
        >"$scratch/schedule" || return 1
    cat "$scratch/schedule"
    if [ "$(capability)" = 9.0 ] && ! grep -q hopper "$scratch/schedule"; then
      echo "the schedule is none of hopper_attention.cuh"
      return 1
    fi
  done
  say python3 "$here/recompute.py" "$scratch"/attention?
}

# Whole layers, computed again by PyTorch in float64.
layers() {
  n=0
  set -- "48920 -b 2 -s 333 -m strided --avg-seq-len 200" "48999 -b 1 -s 1001 -m bigbird -t bf16" \
    "41115 -b 3 -s 517 -m document" "43690 -b 5 -s 97 -m dilated:w=40,d=3" "48935 -b 2 -s 640 -m full -H 6 -W 128" \
    "41115 -b 2 -s 197 --preset eurobert-210m" "43690 -b 2 -s 100 --preset flan-t5-base --lengths 100,37" \
    "41115 -b 2 -s 77 --preset clip-b32-text" "40544 -b 1 -s 333 --preset nomic-v1.5 -t bf16"
  for plan; do
    n=$((n + 1))
    say "$bin/fuseplan" bench $plan --target cuda -L 3 --baseline none -q --dump "$scratch/layers$n" || return 1
  done
  say python3 "$here/recompute.py" "$scratch"/layers?
}

# The error that 12 layers of each family gather, beside PyTorch's of the same numbers in the same type.
errors() {
  set -- bert-base minilm-l6 mpnet-base flan-t5-base nomic-v1.5 gte-base modernbert-base eurobert-210m vit-base \
    clip-l14-vision whisper-small gpt2
  for preset; do
    say timeout 100 "$bin/fuseplan" bench default -b 2 -s 256 --preset "$preset" -L 12 --target cuda --baseline none -q \
      --dump "$scratch/errors/$preset" || return 1
  done
  say python3 "$here/recompute.py" "$scratch"/errors/*
}

# The Python package: each family of models, and what a user does; its times; encode beside sentence-transformers',
# compiled and on onnxruntime.
package() {
  script=$1
  shift
  say env FUSEPLAN="$bin/fuseplan" FUSEPLAN_PYTHON_CACHE="$scratch/libraries" python3 "$here/$script" "$@"
}

# What replays read, into the directory FUSEPLAN_SPACES, else into this one (minutes).
spaces() {
  gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1 | tr 'A-Z ' 'a-z-')
  for entry in '1 128 causal' '8 512 strided'; do
    set -- $entry
    rm -f "$scratch/space"
    say timeout 600 "$bin/fuseplan" search --target cuda --rigor exhaustive --seed 1 --time-limit 480 -b "$1" -s "$2" \
      -m "$3" --db "$scratch/space" && "$bin/fuseplan" db export --db "$scratch/space" >"$scratch/exported" &&
      gzip -9nc "$scratch/exported" >"${FUSEPLAN_SPACES:-.}/${gpu#nvidia-}-b$1-s$2-$3-fp16.ndjson.gz" || return 1
  done
}

# Planted faults are recorded and survived, by a comparison and by a search.
faults() {
  "$here/faults.sh" "$bin" bench && "$here/faults.sh" "$bin" cost
}

# The layer beside PyTorch, and the kernels of its best plans; GRID_POINTS: "B S MASK,B S MASK,...".
grid() {
  grid_points | xargs -d '\n' "$here/grid.sh" "$bin" "${GRID_PEERS:-$scratch/peers.csv}" &&
    grid_points | xargs -d '\n' "$here/roofline.sh" "$bin"
}

# A line for each.
grid_points() {
  [ -z "${GRID_POINTS:-}" ] || {
    echo "$GRID_POINTS" | tr , '\n'
    return
  }
  for size in '1 128' '1 512' '8 128' '8 512' '16 256' '16 1024' '8 2048' '1 4096'; do
    for mask in full causal strided sliding bigbird; do
      echo "$size $mask"
    done
  done
  printf '%s\n' '1 1000 full' '3 384 sliding' '5 640 bigbird' '7 333 causal' '2 777 strided'
}

# run PART: its row of the table.
run() {
  printf '\n---- %s\n' "$1"
  began=$(date +%s)
  outcome=passed
  case $1 in
  export) exported ;; # a command of the shell has this name
  verify | sanitize | dependent) "$here/$1.sh" "$bin" ;;
  memory) "$here/faults.sh" "$bin" memory ;; # another program takes it while a search runs
  python | rates | traffic) package "$1.py" ;;
  python_times) package python.py --times ;;
  sanitize_families) "$here/sanitize.sh" "$bin" -c pre+rms+silu+gate+rope+bias -l sliding ;;
  *) "$1" ;;
  esac || outcome=FAILED
  echo "| $1 | $(($(date +%s) - began)) | $outcome |" | tee -a "$scratch/table"
}

# among LIST PART...: those of the parts that are in the list.
among() {
  list=$1
  shift
  for part; do
    case " $(printf '%s ' $list)" in
    *" $part "*) echo "$part" ;;
    esac
  done
}

[ $# -gt 0 ] || set -- $usual
for part; do
  [ "$(among "$usual $named" "$part")" ] || {
    echo "device.sh: no part '$part'; there are:" $usual $named >&2
    exit 2
  }
done
stopped=
trap 'stopped=yes' INT TERM # the part that runs ends, and what it says is still passed on
for lane in "$filling" "$idle"; do
  {
    trap 'stopped=yes' INT TERM
    for part in $(among "$lane" "$@"); do
      [ "$stopped" ] || run "$part" 2>&1 | (trap '' INT TERM && exec sed -u "s/^/$part: /")
    done
  } &
done
until wait; do :; done
for part; do
  [ "$stopped$(among "$filling $idle" "$part")" ] || run "$part"
done
printf '\n| part | s | outcome |\n|---|---|---|\n'
for part; do
  grep "^| $part |" "$scratch/table" || echo "| $part | | FAILED: it left no row |"
done | tee "$scratch/rows"
! grep -q FAILED "$scratch/rows"
