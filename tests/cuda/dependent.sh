#!/bin/sh
# dependent.sh BIN: kernels begin before those in front of them have ended, and wait for them.  With
# kernels that all let the next one begin at once and then sleep, plans must be right; with kernels that
# do not wait besides, they must not, or the check sees nothing.
set -eu
bin=$1
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# plans NAME FAULT...: verifies plans whose kernels have these faults.
plans() {
  name=$1
  shift
  mkdir "$dir/$name"
  "$here/plant.sh" "$dir/$name" "$@"
  FUSEPLAN_CACHE="$dir/$name/cache" PATH="$dir/$name:$PATH" timeout 250 \
    "$bin/cuda_plans" -C nvcc -n 40 -L 2 fp16 2 100 bigbird >"$dir/$name/out" 2>&1
}

plans late late=all || {
  tail -n 5 "$dir/late/out"
  echo "FAILED: a kernel does not wait for the one in front of it"
  exit 1
}
tail -n 1 "$dir/late/out"
if plans stale stale=all; then
  echo "FAILED: kernels that do not wait were not noticed"
  exit 1
fi
grep -q 'FAILED: .*wrong result' "$dir/stale/out" || {
  tail -n 5 "$dir/stale/out"
  echo "FAILED: kernels that do not wait gave no wrong result"
  exit 1
}
tail -n 1 "$dir/stale/out"
