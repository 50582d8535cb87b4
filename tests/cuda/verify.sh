#!/bin/sh
# verify.sh BIN: every segment by every implementation against the oracle, for all types, masks, shapes and some sizes.
#
# Most of its time goes into compiling, so each workload runs what it alone can show.  A segment of several stages is
# made of the functions of its stages, with barriers between them: all segments run in one type and each in one more,
# and stages in all types and of other chains.  A mask is an argument, which stages of attention read.  Code depends on
# the size of heads where they are split, looked at or merged.  The types of wgmma take turns where a workload is about
# masks or sizes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
types='fp16 bf16 tf32 fp32'
masks='full causal strided fixed sliding dilated longformer bigbird prefix document random'
shapes='2:1024 8:128 1:333 2:100 2:100:60 1:64'
attention=1-5,1-6,2-5,2-6 # of which there are kernels that take the mask in parts
masked=$attention,2-2,2-3,2-4,3-3,3-4,3-5,3-6,4-4,4-5,4-6,5-5,5-6
heads=0-1,1-1,2-2,2-4,3-6,5-6,6-9,$attention # that differ for heads of other sizes
turned=0-1,1-5,1-6,2-4,2-6,6-9,12-14         # that have all knobs between them
sums=0-1,1-6,2-6,6-6,6-8,8-9,10-11,11-11,12-14,0-14
gemms=0-1,6-9,7-7,7-8,7-9,10-11,12-13,12-14 # to heads; of heads; without and with all that may follow a GEMM
e4m3_gemms=0-0,0-1,7-7,7-8,7-9,10-10,10-11,12-13,12-14
kernel='-i hopper_gemm' wgmma='-i hopper_attention'

# pick N WORD...: the word at N, from 0 and counted around; half N: of the types of wgmma.
pick() {
  shift $(($1 % ($# - 1) + 1))
  echo "$1"
}

half() {
  pick "$1" fp16 bf16
}

# at SHAPE TYPE MASK: the arguments for a batch, a length and, where lengths are drawn, their average.
at() {
  echo "$1" | (
    IFS=: read -r batch length average
    echo "$2 $batch $length $3${average:+ -a $average}"
  )
}

# segments_of N WORDS TYPE: at each shape, each mask with some of them.
segments_of() {
  n=$1
  for shape in $shapes; do
    # shellcheck disable=SC2086
    at "$shape" "$2 $3" "$(pick $n $masks)"
    n=$((n + 4))
  done
}

# All segments in fp16, a third of them in each other type, of which all have all stages.  Parts are so small that no
# run compiles for long.
segments() {
  third=0
  for type in bf16 tf32 fp32; do
    segments_of 0 "-p $third/3" fp16
    segments_of $((third + 1)) "-p $third/3" $type
    segments_of $((third + 1)) '-s stages' $type
    third=$((third + 1))
  done
}

# hopper_gemm where a tile takes one to six steps and, unless it is split, a thread block several tiles: 50000 rows
# are 391 tiles of 128, and an H100 runs 132 thread blocks.  The inner dimension is 64 times the heads, of the second
# GEMM of the feed-forward part its size: the last step of 72 and of 200 has 8 columns.  A layernorm takes tiles that
# divide the hidden size: up to 128 columns of 2 heads, up to 192 of 3 and 6, up to 256 of 4, 64 of 1 and 5.  From 4
# heads on q, k and v exceed L2 (60 MB), and lone kernels go backwards; of 260 sentences they fit in.
few_steps() {
  n=0
  for size in '-H 1 -F 72' '-H 2 -F 128' '-H 3 -F 256' '-H 4 -F 320' '-H 5 -F 200' '-H 6 -F 192'; do
    echo "$kernel -s $gemms $(half $n) 400 125 full $size"
    echo "$kernel -s 0-1 -c rope $(half $n) 400 125 full $size"
    n=$((n + 1))
  done
  echo "$kernel -s $gemms fp16 260 125 full -H 4 -F 320"
}

# GEMMs in e4m3, half to three steps of 128; of the last one of 208 there are 80 columns.  A norm before a sublayer is
# stored in e4m3 alone.  Of few rows a norm may follow sums that are split.  What attention stores.
e4m3() {
  n=0
  for size in '-H 1 -F 128' '-H 2 -F 144' '-H 3 -F 256' '-H 4 -F 320' '-H 5 -F 208' '-H 6 -F 192'; do
    echo "-e fp8 -s $e4m3_gemms $kernel -i library fp16 400 125 full $size"
    echo "-e fp8 -s $e4m3_gemms $kernel -i library -c pre+rms+relu+rope bf16 400 125 full $size -a 60"
    echo "-e fp8 -s 10-11 $kernel -c silu+gate $(half $n) 400 125 full $size"
    echo "-e fp8 -s $e4m3_gemms $kernel fp16 2 100 full $size"
    echo "-e fp8 -s 7-9,12-14 $kernel -c pre+rms+relu+rope bf16 2 100 full $size -a 60"
    n=$((n + 1))
  done
  # After one step a team's next tile is stored soonest.
  echo "-e fp8 -s 12-14 $kernel -c pre+rms+relu+rope bf16 400 125 full -H 4 -F 64"
  echo "-e fp8 -k 0 -s $e4m3_gemms $kernel bf16 400 125 full -H 3 -F 256"
  echo "-e fp8 -k 0 -s $e4m3_gemms $kernel -c pre+rms+relu+rope fp16 400 125 full -H 3 -F 256 -a 60"
  for size in 32 48 64 80 96 128; do
    for mask in strided bigbird document; do
      echo "-e fp8 -s 1-6,2-6 $wgmma -W $size $(half $n) 2 333 $mask -a 200"
    done
    echo "-e fp8 -s 1-6 $wgmma -W $size $(half $n) 9 45 full -a 20"
    n=$((n + 1))
  done
}

# L2 does not hold all keys and values: attention takes heads in groups, and kernels go backwards.
groups() {
  echo "-s 1-6 $wgmma fp16 14 1000 full"
  echo "-s 1-6 $wgmma bf16 14 1000 causal"
  echo "-s 1-6,2-6 $wgmma bf16 16 1100 strided -a 1000"
  echo "-e fp8 -s 1-6,2-6 $wgmma fp16 14 1000 strided"
  echo "-s 1-6 $wgmma -c bias bf16 14 1000 full"
  echo "-s 1-6 $wgmma -c bias fp16 14 1000 causal"
}

# Schedules with one knob turned, and those of hopper_gemm, of few rows.
schedules() {
  echo "-i generated -i handwritten $wgmma -k 1 -s $turned fp16 2 100 causal -a 60"
  echo "-i generated -i handwritten -k 1 -s $turned tf32 2 100 causal -a 60"
  echo "-i generated -i handwritten -k 1 -s $turned fp32 2 100 causal -a 60"
  echo "$kernel -s $gemms fp16 2 100 full -a 60"
  echo "$kernel -k 1 -s $gemms bf16 2 100 full -a 60"
}

# Chains that together have all functions; of further activations the operator alone.  A hidden size of its own, and
# layers of two kinds.
chains() {
  for type in $types; do
    at_shapes="-c pre+rms+silu+gate+rope+bias -s stages $type"
    case $type in fp*) at_shapes="$at_shapes,-c relu+bias -s stages $type" ;; esac
    echo "$at_shapes" | tr , '\n' | sed 's/.*/& 2 100 causal\n& 1 333 bigbird\n& 3 70 full -a 40/'
    for chain in relu gelu_tanh quick_gelu gelu_tanh+gate; do
      echo "-c $chain -s 11-11 $type 3 70 full -a 40"
    done
    echo "-k 0 -s $attention -l strided:t=7 $type 1 333 strided"
  done
  for type in fp16 tf32; do
    echo "-c pre+hidden -k 0 -s $sums $type 2 100 causal -H 6 -D 512"
  done
  for type in bf16 fp32; do
    echo "-c pre+rms+silu+gate+rope+bias+hidden -k 0 -s $sums $type 2 100 causal -H 6 -D 200"
    echo "-c pre+gate+rope -k 0 -s 1-1,2-2,3-4,$sums -l sliding $type 2 333 full -a 200"
  done
}

# Heads that are no power of two, or are 256 columns; in all tiles once.
other_heads() {
  n=0
  for size in '8 fp16' '16 bf16' '32 tf32' '48 bf16' '72 fp16' '80 fp16' '80 tf32' '96 bf16' '104 fp16' '128 fp16' \
    '128 bf16' '256 fp16' '48 tf32' '72 fp32' '104 tf32' '256 fp32'; do
    case $size in
    8' '* | 72* | 104*) chain='-c bias -s 1-6,2-6' ;;
    *) chain='-c rope+bias -s 0-1,1-1,1-6,2-6' ;;
    esac
    echo "-k 0 -s $heads -W $size $(pick $n '1 333 bigbird' '2 100 causal -a 60') -H 3"
    echo "-k 0 $chain -W $size $(pick $n '2 100 causal -a 60' '1 333 bigbird') -H 3"
    n=$((n + 1))
  done
  echo "-k 1 -s $heads -W 72 fp16 1 333 bigbird -H 3"
  echo "-k 0 -s 8-9,12-14 -W 128 bf16 1 333 bigbird" # wide rows
}

# Heads by wgmma: turned where they are split, in tiles of whole heads, and looked at.
wgmma_heads() {
  for size in '32 fp16' '64 fp16' '64 bf16' '128 bf16'; do
    echo "-c rope -s 0-1 $kernel -W $size 3 111 full"
    echo "-c rope -s 0-1 $kernel -W $size 2 333 full -a 200"
  done
  n=0
  for size in 32 48 72 80 96 104 128; do
    echo "-s 1-6,2-5 $wgmma -W $size $(half $n) 2 333 strided -a 200"
    echo "-s 1-6 $wgmma -W $size $(half $n) 9 45 sliding_causal:w=9 -a 20"
    echo "-s 2-6 $wgmma -W $size -c bias $(half $n) 2 333 strided -a 200"
    n=$((n + 1))
    echo "-s 1-6 $wgmma -W $size $(half $n) 2 333 bigbird -a 200"
    echo "-s 1-5 $wgmma -W $size -c bias $(half $n) 2 333 document -a 200"
  done
}

# Each mask at each shape: all kernels of attention in one type of wgmma, at every second shape in another type, too.
every_mask() {
  m=0
  for mask in $masks; do
    n=$m
    for shape in $shapes; do
      at "$shape" "-k 0 -s $masked $(half $n)" "$mask"
      [ $((n % 2)) -eq 0 ] || at "$shape" "-k 0 -s $masked $(pick $((n / 2)) tf32 fp32)" "$mask"
      n=$((n + 1))
    done
    echo "-s $attention $(half $m) 1 333 $mask"
    echo "-s $attention $(half $((m + 1))) 2 333 $mask -a 200"
    echo "-s $attention -c bias $(half $m) 2 333 $mask -a 200"
    m=$((m + 1))
  done
}

# What compiles most comes first.
workloads=$(
  segments
  few_steps
  e4m3
  groups
  schedules
  chains
  other_heads
  wgmma_heads
  every_mask
)
exec "$here/side_by_side.py" "$1" <<END_OF_WORKLOADS
$workloads
END_OF_WORKLOADS
