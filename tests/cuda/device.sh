#!/bin/sh
# Everything that needs a GPU: what the machine has, all segments verified, plans and searches timed.
#   device.sh BIN [PART...]   BIN: the directory of fuseplan, fuseplan-worker and cuda_segments
# PART: doctor bench verify search; all of them where none is named.
set -u
bin=$1
shift
[ $# -gt 0 ] || set -- doctor bench verify search
status=0

say() {
  printf '\n$ %s\n' "$*"
  start=$(date +%s)
  "$@" || status=1
  echo "# $(($(date +%s) - start)) s"
}

doctor() {
  say nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv
  say "$bin/fuseplan" doctor
}

bench() {
  say "$bin/fuseplan" bench --target cuda -b 1 -s 128 -m causal 43690 41115
  say "$bin/fuseplan" bench --target cuda -b 8 -s 512 -m strided 43690 41115
}

verify() {
  for dtype in fp16 bf16 tf32 fp32; do
    say "$bin/cuda_segments" "$dtype" 2 100 causal 0
    say "$bin/cuda_segments" "$dtype" 1 333 strided 200
    say "$bin/cuda_segments" "$dtype" 8 128 bigbird 0
  done
}

search() {
  say "$bin/fuseplan" search --target cuda -b 1 -s 128 -m causal --budget 64 --time-limit 100 --seed 1
  say "$bin/fuseplan" search --target cuda -b 8 -s 512 -m strided --budget 64 --time-limit 120 --seed 1
}

for part; do
  case $part in
  doctor) doctor ;;
  bench) bench ;;
  verify) verify ;;
  search) search ;;
  *)
    echo "device.sh: no part '$part'" >&2
    exit 2
    ;;
  esac
done
exit $status
