#!/bin/sh
# Everything that needs a GPU: what the machine has, all segments verified, plans and searches timed.
#   device.sh BIN [PART...]   BIN: the directory of fuseplan, fuseplan-worker and cuda_segments
# PART: doctor bench search repeat verify faults; all of them where none is named.
set -u
bin=$1
shift
[ $# -gt 0 ] || set -- doctor bench search repeat verify faults
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

# One type's segments over shapes and masks; a cache of its own, so that the types run side by side.
verify_dtype() {
  for shape in "1 64" "2 100" "1 333" "8 128" "2 1024"; do
    for mask in full causal strided bigbird document; do
      # the shape is two words
      # shellcheck disable=SC2086
      FUSEPLAN_CACHE=$scratch/$1 "$bin/cuda_segments" "$1" $shape $mask 0 || echo "FAILED: status $?"
    done
  done
  FUSEPLAN_CACHE=$scratch/$1 "$bin/cuda_segments" "$1" 2 100 causal 60 || echo "FAILED: status $?"
}

verify() {
  scratch=$(mktemp -d)
  start=$(date +%s)
  printf '\nsegments, all implementations, types side by side\n'
  for dtype in fp16 bf16 tf32 fp32; do
    verify_dtype $dtype >"$scratch/$dtype.log" 2>&1 &
  done
  wait
  cat "$scratch"/*.log
  if grep -q FAILED "$scratch"/*.log; then status=1; fi
  rm -rf "$scratch"
  echo "# $(($(date +%s) - start)) s"
}

# Twenty plans, twice, each time by a new process.
repeat() {
  plans="43690 41115 40804 40544 32768 49151 36864 40960 41120 41130 41140 41200 41300 41400 41500"
  plans="$plans 42000 42500 43000 43500 44000"
  for _ in 1 2; do
    # the plans are words
    # shellcheck disable=SC2086
    say "$bin/fuseplan" bench --target cuda -b 1 -s 128 -m causal --no-baseline --format csv $plans
  done
}

# An nvcc that plants a hang into op 13, a wild write into ops 10-14 and a lost result into ops 0-1:
# three plans must fail, each with its reason, and the fourth must not.
faults() {
  scratch=$(mktemp -d)
  nvcc=$(command -v nvcc)
  cat >"$scratch/nvcc" <<EOF
#!/bin/sh
for source; do :; done
if [ -f "\$source" ]; then
  sed -i -e '/^segment_13_13_/{n;s/.*/{ for (;;) __nanosleep(1000);/;}' \\
    -e '/^segment_10_14_/{n;s/.*/{ *(volatile int *)8 = 1;/;}' \\
    -e '/^segment_00_01_/{n;s/.*/{ return;/;}' "\$source"
fi
exec $nvcc "\$@"
EOF
  chmod +x "$scratch/nvcc"
  FUSEPLAN_CACHE=$scratch/cache FUSEPLAN_DB=$scratch/db PATH=$scratch:$PATH
  export FUSEPLAN_CACHE FUSEPLAN_DB PATH
  printf '\nthree plans with planted faults, and 41115\n'
  "$bin/fuseplan" bench --compiler nvcc --target cuda -b 1 -s 128 -m causal --no-baseline \
    43690 41120 40804 41115 || [ $? -eq 3 ] || status=1
  rm -rf "$scratch"
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
  repeat) repeat ;;
  faults) faults ;;
  *)
    echo "device.sh: no part '$part'" >&2
    exit 2
    ;;
  esac
done
exit $status
