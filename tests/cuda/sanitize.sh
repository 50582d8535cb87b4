#!/bin/sh
# sanitize.sh BIN [OPTION...]: compute-sanitizer over each kind of stage, through the worker; first over planted faults,
# which it must find.  OPTION, of cuda_segments, makes the layer another one than BERT's, such as -c
# pre+rms+silu+gate+rope+bias -l sliding.
#
# A kernel takes seconds here, so a schedule is looked at where its code is new: knobs of a GEMM in two or three
# segments, other stages in one schedule.  A thread block's own memory is as full with few heads: where kernels take a
# thread block for each tile there are few.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=$1
shift
layer=$*
small='-H 4 -F 576'
rest=0-0,1-1,1-5,1-6,2-2,2-4,3-4,4-5,5-5,6-7,6-9,8-8,8-9,9-9,10-11,11-11,10-14,13-14,0-14
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export FUSEPLAN_CACHE="${FUSEPLAN_CACHE:-$dir/cache}" FUSEPLAN_PASS='*' # the tool's variables reach the worker

# plant FAULT TOOL TEXT: whether the tool reports what an nvcc of our own plants.
plant() {
  mkdir "$dir/$1"
  "$here/plant.sh" "$dir/$1" "$1=8-8" || :
  echo "$2 -C nvcc -d 30 -s 8-8 fp16 2 100 causal" | FUSEPLAN_CACHE="$dir/$1" PATH="$dir/$1:$PATH" \
    "$here/side_by_side.py" "$bin" --tools >"$dir/$1/out" 2>&1 || : # the fault
  if grep "^FAILED: $2: .*$3" "$dir/$1/out" >"$dir/$1/found"; then
    echo "$2 finds the planted fault: $(sed -n 's/ <- .*//;1p' "$dir/$1/found")"
  else
    cat "$dir/$1/out"
    echo "FAILED: $2 does not find the planted fault"
    : >"$dir/missed"
  fi
}

# slices N WORD...: the words with each part of N.
slices() {
  parts=$1
  shift
  for slice in $(seq 0 $((parts - 1))); do
    echo "$tool -p $slice/$parts $*"
  done
}

# Rings that are filled several times, and a mask whose cover has two parts.
heads_of() {
  echo "$tool -i hopper_attention -s 1-6 -W $1 fp16 1 700 full -H 2"
  echo "$tool -i hopper_attention -s 1-6 -W $1 fp16 1 512 strided -H 2"
  echo "$tool -i generated -k 0 -s 1-6,2-4 -W $1 fp16 1 512 strided -H 2"
}

# Thread blocks that take several tiles: teams and warpgroups of GEMMs wait for each other.  racecheck, which did not
# end on these in a minute, has what they store from one tile each.
several_tiles() {
  echo "$tool -i hopper_attention -s 1-6 fp16 40 128 causal -a 27"
  if [ "$tool" = racecheck ]; then
    slices 2 -i hopper_gemm -k 1 -s 12-13 fp16 2 100 causal -a 60
  else
    slices 4 -i hopper_gemm -s 7-7,7-8,7-9 fp16 150 125 full -H 2 -F 128
    slices 2 -i hopper_gemm -e fp8 -k 1 -s 0-1,10-11 fp16 150 125 full -H 2 -F 128
  fi
}

# Steps of hopper_gemm fill its ring several times only where the inner dimension is large.
kinds() {
  slices 6 -i hopper_gemm -k 1 -s 0-1,12-14 "$layer" fp16 2 100 causal -a 60
  echo "$tool -i hopper_gemm -k 0 -s 0-0,6-7,6-9,7-8,10-11 $layer fp16 2 100 causal -a 60"
  echo "$tool -i hopper_gemm -e fp8 -k 0 -s 0-1,7-8,7-9,10-11 $layer fp16 2 100 full -a 60"
  slices 2 -i hopper_attention -k 1 -s 1-6,2-5 "$layer" fp16 2 100 causal -a 60
  echo "$tool -i hopper_attention -k 0 -s 1-5,2-6 $layer fp16 2 100 causal -a 60"
  for type in fp16 tf32; do
    slices 2 -i generated -i handwritten -k 1 -s 0-1,2-6,12-14 "$layer" $type 2 100 causal -a 60 "$small"
    slices 2 -i generated -k 0 -s $rest "$layer" $type 2 100 causal -a 60 "$small"
  done
  slices 2 -i generated -i handwritten -k 0 -s 0-1,2-6,12-14,$rest "$layer" fp32 2 100 causal -a 60 "$small"
}

plant wild memcheck 'Invalid __global__ write' &
plant race racecheck 'Race reported\|hazard' &
plant part synccheck 'Barrier error' &
wait
# racecheck takes longest
lines=$(for tool in racecheck memcheck synccheck; do
  kinds
  several_tiles
  heads_of 64
  heads_of 128
done)
"$here/side_by_side.py" "$bin" --tools <<END_OF_LINES || : >"$dir/missed"
$lines
END_OF_LINES
[ ! -e "$dir/missed" ]
