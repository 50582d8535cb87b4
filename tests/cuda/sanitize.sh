#!/bin/sh
# sanitize.sh BIN [OPTION...]: compute-sanitizer over a segment of each kind of stage, through the worker; first over
# two planted faults, which it must find.  Slices of the work run side by side, on all visible GPUs in turn, each with
# two cores: a worker's oracle has a thread for each core that it may use, whatever OMP_NUM_THREADS says.  OPTION, of
# cuda_segments, makes the layer another one than BERT's, such as -c pre+rms+silu+gate+rope+bias -l sliding.
set -u
bin=$1
shift
layer=$*
here=$(cd "$(dirname "$0")" && pwd)
cores=$(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
  while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done)
core_count=$(echo "$cores" | wc -l)
slices=$(((core_count + 3) / 4))
gpus=${CUDA_VISIBLE_DEVICES:-$(nvidia-smi --query-gpu=index --format=csv,noheader | paste -s -d ,)}
gpu_count=$(echo "$gpus" | tr ',' '\n' | wc -l)
started=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export FUSEPLAN_CACHE="${FUSEPLAN_CACHE:-$dir/cache}" FUSEPLAN_PASS='*' # the tool's variables reach the worker
command -v compute-sanitizer >/dev/null || {
  echo "FAILED: there is no compute-sanitizer on PATH"
  exit 1
}

# sanitized TOOL NAME SEGMENTS_ARGUMENT...: what the tool says in NAME.log, the program in NAME.out.
# The program itself uses no GPU, its worker does; kernels are many times slower than alone.
sanitized() {
  tool=$1 name=$2
  shift 2
  gpu=$(echo "$gpus" | cut -d , -f $((started % gpu_count + 1)))
  two=$(for i in 0 1; do echo "$cores" | sed -n "$(((2 * started + i) % core_count + 1))p"; done | paste -s -d ,)
  CUDA_VISIBLE_DEVICES=$gpu timeout 400 taskset -c "$two" compute-sanitizer --tool "$tool" --target-processes all \
    --require-cuda-init no --log-file "$dir/$name.log" "$bin/cuda_segments" -d 200 "$@" >"$dir/$name.out" 2>&1
}

# Findings in the logs of one tool, "none" where it never ran.  A finding is a line at the margin of
# the tool's frame; its details are indented.  That the worker was killed at its end is none.
findings() {
  cat "$dir/$1".*.log 2>/dev/null | grep '^=========' |
    grep -v -e '^=========  ' -e '^========= *$' -e COMPUTE-SANITIZER -e ' SUMMARY: ' \
      -e "process didn't terminate successfully" -e 'Target application returned an error'
}

count_findings() {
  if grep -q '^=========' "$dir/$1".*.log 2>/dev/null; then
    findings "$1" | wc -l
  else
    echo none
  fi
}

# plant FAULT TOOL: in a subshell, with an nvcc and a cache of its own.
plant() {
  mkdir "$dir/$1"
  "$here/plant.sh" "$dir/$1" "$1=8-8" || exit 1
  export FUSEPLAN_CACHE="$dir/$1" PATH="$dir/$1:$PATH"
  "$bin/cuda_segments" -b -C nvcc -s 8-8 fp16 2 100 causal
  sanitized "$2" "planted_$2.0" -C nvcc -s 8-8 fp16 2 100 causal
}

status=0
plant wild memcheck &
plant race racecheck &
wait
for tool in memcheck racecheck; do
  errors=$(count_findings planted_$tool)
  echo "$tool finds the planted fault: $errors findings"
  case $errors in none | 0) status=1 ;; esac
done

# GEMMs of a few steps, where some thread blocks take a second tile: teams and warpgroups wait for each other
turns='-i hopper_gemm -s 7-7,7-8,7-9 -H 2 -F 128 fp16 150 125 full'
# shellcheck disable=SC2086
"$bin/cuda_segments" -b $turns || status=1
for type in fp16 tf32; do
  # shellcheck disable=SC2086
  "$bin/cuda_segments" -b $layer -s kinds $type 2 100 causal || status=1
done
tiles='-s 1-6 -i hopper_attention -a 27 fp16 40 128 causal'
# shellcheck disable=SC2086
"$bin/cuda_segments" -b $tiles || status=1
for size in 64 128; do
  "$bin/cuda_segments" -b -W $size -s 1-6 fp16 1 512 strided || status=1
  "$bin/cuda_segments" -b -W $size -s 1-6 -i hopper_attention fp16 1 700 full || status=1
done
start=$(date +%s)
for tool in memcheck racecheck synccheck; do
  for slice in $(seq 0 $((slices - 1))); do
    for type in fp16 tf32; do
      started=$((started + 1))
      # shellcheck disable=SC2086
      sanitized $tool "$tool.$type.$slice" $layer -s kinds -p "$slice/$slices" -a 60 $type 2 100 causal &
    done
  done
  for size in 64 128; do # a mask whose cover has two parts; rings that are filled several times
    started=$((started + 1))
    sanitized $tool $tool.cover.$size -W $size -s 1-6 fp16 1 512 strided &
    started=$((started + 1))
    sanitized $tool $tool.ring.$size -W $size -s 1-6 -i hopper_attention fp16 1 700 full &
  done
  started=$((started + 1)) # thread blocks that take several tiles
  # shellcheck disable=SC2086
  sanitized $tool $tool.tiles $tiles &
  if [ $tool != racecheck ]; then # it did not end in a minute
    started=$((started + 1))
    # shellcheck disable=SC2086
    sanitized $tool $tool.turns $turns &
  fi
done
wait

echo "| tool | kernels | failed | findings |"
echo "|---|---|---|---|"
for tool in memcheck racecheck synccheck; do
  errors=$(count_findings $tool)
  cat "$dir/$tool".*.out | awk -v tool=$tool -v errors="$errors" -v runs="$(find "$dir" -name "$tool.*.out" | wc -l)" '
    / allowed; / {
      ended++
      for (i = 2; i <= NF; i++) {
        if ($i == "kernels,") kernels += $(i - 1)
        if ($i == "failed,") failed += $(i - 1)
      }
    }
    END {
      printf "| %s | %d | %d | %s |\n", tool, kernels, failed, errors
      exit !(ended == runs && failed == 0 && errors == "0")
    }' || status=1
done
echo "# $(($(date +%s) - start)) s, $started processes side by side"
if [ $status -ne 0 ]; then
  grep -h FAILED "$dir"/[mrs]*check.*.out | head -n 20
  for tool in memcheck racecheck synccheck; do
    findings $tool | sort | uniq -c | sort -rn | head -n 12
  done
fi
exit $status
