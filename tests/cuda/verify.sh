#!/bin/sh
# verify.sh BIN: every segment by every implementation against the oracle, for all types, masks, shapes and some
# sizes.  Builds first, all cores on one type; then a process a workload, as many as there are cores.
set -u
bin=$1
types='fp16 bf16 tf32 fp32'
attention=1-5,1-6,2-5,2-6 # of which there are kernels that take the mask in parts
heads=0-1,1-1,2-2,2-4,3-6,5-6,6-9,$attention # that differ for heads of other sizes
sizes='8 fp16,48 bf16,72 fp16,80 fp16,80 tf32,96 bf16,104 fp16,256 fp16,48 tf32,72 fp32,104 tf32,256 fp32'
wgmma_sizes='32 48 72 80 96 104 128' # of heads, beside 64
gemms=0-1,6-9,7-7,7-8,7-9,10-11,12-13,12-14 # to heads; of heads; without and with all that may follow a GEMM
e4m3_gemms=0-0,0-1,7-7,7-8,7-9,10-10,10-11,12-13,12-14
masks='full causal strided fixed sliding dilated longformer bigbird prefix document random'
# Chains that together have all functions; of further activations the operator alone.
chains='pre+rms+silu+gate+rope+bias relu+bias'
activations='gelu_tanh quick_gelu gate gelu_tanh+gate'
limit_s=480 # of the verification; of one workload half of it
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export FUSEPLAN_CACHE="${FUSEPLAN_CACHE:-$dir/cache}"

# hopper_gemm where a tile takes one to five steps and, unless it is split, a thread block several tiles: 50000 rows
# are 391 tiles of 128, and an H100 runs 132 thread blocks.  The inner dimension is 64 times the heads, of the second
# GEMM of the feed-forward part its size: the last step of 72 and of 200 has 8 columns.  A layernorm takes tiles that
# divide the hidden size: up to 128 columns of 2 heads, up to 192 of 3, up to 256 of 4, 64 of 1 and 5.
few_steps() {
  for type in fp16 bf16; do
    for size in '-H 1 -F 72' '-H 2 -F 128' '-H 3 -F 256' '-H 4 -F 320' '-H 5 -F 200'; do
      echo "-s $gemms -i hopper_gemm $size $type 400 125 full"
      echo "-c rope -s 0-1 -i hopper_gemm $size $type 400 125 full"
    done
  done
}

# GEMMs in e4m3, half to three steps of 128; of the last one of 208 there are 80 columns.  What attention stores.  A
# norm before a sublayer is stored in e4m3 alone.  Of few rows a norm may follow sums that are split.
e4m3() {
  for type in fp16 bf16; do
    for size in '-H 1 -F 128' '-H 2 -F 144' '-H 3 -F 256' '-H 4 -F 320' '-H 5 -F 208'; do
      echo "-e fp8 -s $e4m3_gemms -i hopper_gemm -i library $size $type 400 125 full"
      echo "-e fp8 -c pre+rms+relu+rope -s $e4m3_gemms -i hopper_gemm -i library $size -a 60 $type 400 125 full"
      echo "-e fp8 -c silu+gate -s 10-11 -i hopper_gemm $size $type 400 125 full"
      echo "-e fp8 -s $e4m3_gemms -i hopper_gemm $size $type 2 100 full"
      echo "-e fp8 -c pre+rms+relu+rope -s 7-9,12-14 -i hopper_gemm $size -a 60 $type 2 100 full"
    done
    for size in 32 48 64 80 96 128; do
      for mask in strided bigbird document; do
        echo "-e fp8 -s 1-6,2-6 -i hopper_attention -W $size -a 200 $type 2 333 $mask"
      done
      echo "-e fp8 -s 1-6 -i hopper_attention -W $size -a 20 $type 9 45 full"
    done
  done
}

# families ARGUMENT...: the workloads of all chains.
families() {
  for type in $types; do
    for chain in $chains; do
      echo "-c $chain $type $*"
    done
    for chain in $activations; do
      echo "-c $chain -s 11-11 $type $*"
    done
  done
}

# other_heads SHAPE: heads that are no power of two, or are 256 columns.
other_heads() {
  echo "$sizes" | tr ',' '\n' | while read -r size; do
    echo "-s $heads -H 3 -W $size $1"
    case $size in
      8' '* | 72* | 104*) echo "-c bias -s 1-6,2-6 -H 3 -W $size $1" ;;
      *) echo "-c rope+bias -s 0-1,1-1,1-6,2-6 -H 3 -W $size $1" ;;
    esac
  done
}

# The longest first.  Of (12,1000) L2 does not hold all keys and values: attention takes heads in groups.
workloads() {
  for type in fp16 bf16; do
    for mask in full causal; do
      echo "-s 1-6 -i hopper_attention $type 12 1000 $mask"
      echo "-c bias -s 1-6 -i hopper_attention $type 12 1000 $mask"
    done
  done
  few_steps
  e4m3
  for shape in '2 1024' '8 128' '1 333' '2 100' '1 64'; do
    for mask in $masks; do
      for type in $types; do
        echo "$type $shape $mask"
        [ "$shape" != '2 100' ] || echo "-a 60 $type $shape $mask"
      done
    done
  done
  families 2 100 causal
  for type in $types; do
    echo "-c pre+hidden -H 6 -D 512 $type 2 100 causal"
    echo "-c pre+rms+silu+gate+rope+bias+hidden -H 6 -D 200 $type 2 100 causal"
  done
  families 1 333 bigbird
  families 3 70 full | sed 's/^/-a 40 /'
  for size in '16 bf16' '32 tf32' '128 fp16' '128 bf16'; do
    echo "-c rope+bias -s 1-1,1-6,2-6 -W $size 1 100 full"
    echo "-W $size 1 333 bigbird"
    echo "-a 60 -W $size 2 100 causal"
  done
  for type in $types; do
    echo "-l sliding -c pre+gate+rope -a 200 $type 2 333 full"
    echo "-l strided:t=7 -s $attention $type 1 333 strided"
  done
  other_heads '1 333 bigbird'
  other_heads '2 100 causal' | sed 's/^/-a 60 /'
  for type in $types; do
    echo "-s kinds -a 60 $type 2 100 causal"
  done
  for type in fp16 bf16; do
    for size in 32 64 128; do
      echo "-c rope -s 0-1 -i hopper_gemm -W $size $type 3 111 full"
      echo "-c rope -s 0-1 -i hopper_gemm -W $size -a 200 $type 2 333 full"
    done
    for mask in $masks; do
      echo "-s $attention $type 1 333 $mask"
      echo "-s $attention -a 200 $type 2 333 $mask"
      echo "-c bias -s $attention -a 200 $type 2 333 $mask"
    done
    for size in $wgmma_sizes; do
      for mask in strided bigbird document; do
        echo "-s $attention -W $size -a 200 $type 2 333 $mask"
        echo "-c bias -s $attention -W $size -a 200 $type 2 333 $mask"
      done
      echo "-s 1-6 -i hopper_attention -W $size -a 20 $type 9 45 sliding_causal:w=9"
    done
  done
}

# built ARGUMENT...: builds what one workload loads; a failure counts, and the others are still built.
built() {
  "$bin/cuda_segments" -b "$@" || status=1
}

# All that the workloads load.  Code depends on type and head size, not on shapes.  Which tiles a layernorm can take
# depends on the hidden size.
build() {
  for type in $types; do
    built "$type" 1 64 full
    built -s kinds "$type" 1 64 full
    built -s $attention "$type" 1 64 full
  done
  for type in fp16 bf16; do
    for chain in bert pre+rms+relu+rope; do
      built -e fp8 -c $chain -s $e4m3_gemms -i hopper_gemm $type 1 64 full
    done
    built -e fp8 -c silu+gate -s 10-11 -i hopper_gemm $type 1 64 full
    built -e fp8 -s 1-6,2-6 -i hopper_attention $type 1 64 full
  done
  for size in '16 bf16' '32 tf32' '128 fp16' '128 bf16'; do
    # shellcheck disable=SC2086
    built -W $size 1 64 full
    # shellcheck disable=SC2086
    built -c rope+bias -s 1-1,1-6,2-6 -W $size 1 64 full
  done
  for type in fp16 bf16; do
    built -c bias -s $attention "$type" 1 64 full
    for size in $wgmma_sizes; do
      built -s $attention -W "$size" "$type" 1 64 full
      built -c bias -s $attention -W "$size" "$type" 1 64 full
    done
    for size in 32 64 128; do
      built -c rope -s 0-1 -i hopper_gemm -W $size "$type" 1 64 full
    done
  done
  other_heads '1 64 full' | xargs -L 1 "$bin/cuda_segments" -b || status=1
  families 1 64 full | xargs -L 1 "$bin/cuda_segments" -b || status=1
  few_steps | xargs -L 1 "$bin/cuda_segments" -b || status=1
}

# "fp16 (2,100) causal: 213 kernels, 0 failed, 0 refused, largest error 4.7e-04 of 0.002 allowed; built
# in 0.1 s, the oracle and the first one 1.2 s, the others 3.4 s"
summarise() {
  awk '
    / allowed; / {
      for (i = 3; i < NF; i++) {
        if ($i == "kernels,") kernels = $(i - 1)
        if ($i == "failed,") failed = $(i - 1)
        if ($i == "refused,") refused = $(i - 1)
        if ($i == "error") { error = $(i + 1); allowed = $(i + 3) }
        if ($i == "one") first = $(i + 1)
      }
      row[$1 " " $2]; row[$1 " all"]; limit[$1] = allowed
      for (k in add) delete add[k]
      add[$1 " " $2]; add[$1 " all"]
      for (k in add) {
        n[k]++; all[k] += kernels; bad[k] += failed; no[k] += refused; first_s[k] += first; rest_s[k] += $(NF - 1)
        if (error + 0 > worst[k] + 0) worst[k] = error
      }
    }
    END {
      print "| type | (batch, length) | workloads | kernels | failed | refused | largest error | allowed | oracle, s | kernels, s |"
      print "|---|---|---|---|---|---|---|---|---|---|"
      for (k in row) {
        split(k, name, " ")
        printf "| %s | %s | %d | %d | %d | %d | %s | %s | %.0f | %.0f |\n", name[1], name[2], n[k], all[k],
          bad[k], no[k], worst[k], limit[name[1]], first_s[k], rest_s[k] | "sort"
      }
    }' "$1"
}

status=0
build
start=$(date +%s)
workloads >"$dir/workloads"
timeout $limit_s xargs -P "$(nproc)" -L 1 timeout $((limit_s / 2)) "$bin/cuda_segments" \
  <"$dir/workloads" >"$dir/log" 2>&1 || status=1
grep FAILED "$dir/log" | head -n 40
grep '^refused: ' "$dir/log" | sed 's/.*: //' | sort | uniq -c | head -n 10
grep -v -e FAILED -e '^refused: ' -e ' allowed; ' "$dir/log" | head -n 10
summarise "$dir/log"
wanted=$(wc -l <"$dir/workloads") ended=$(grep -c ' allowed; ' "$dir/log")
[ "$wanted" -eq "$ended" ] || status=1
echo "$ended of $wanted workloads verified in $(($(date +%s) - start)) s by $(nproc) processes"
exit $status
