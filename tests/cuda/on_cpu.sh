#!/bin/sh
# on_cpu.sh BIN: the programs of this folder on the CPU target, where they need no GPU.
set -eu
bin=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export FUSEPLAN_CACHE="$dir/cache"
mkdir "$dir/cache"
[ -z "${FUSEPLAN_TEST_BINARIES:-}" ] || ln -s "$FUSEPLAN_TEST_BINARIES" "$dir/cache/binaries"
"$bin/cuda_segments" -t cpu -s 8-9 -W 16 -a 30 fp32 2 65 random
"$bin/cuda_segments" -t cpu -s stages -k 1 -p 3/20 -b fp32 1 8 full
"$bin/cuda_segments" -t cpu -s 7-8,12-13 -H 3 -W 16 -F 40 fp32 2 33 full >"$dir/sizes"
grep -q '^fp32 (2,33) full H=3 W=16 F=40: .* kernels, 0 failed' "$dir/sizes" || {
  cat "$dir/sizes" >&2
  exit 1
}
"$bin/cuda_segments" -t cpu -c pre+rms+silu+gate+rope+bias -s 1-6,10-11 -H 2 -W 16 -a 30 fp32 2 65 random
"$bin/cuda_segments" -t cpu -c rope -l sliding:w=3 -s 1-6 -H 2 -W 16 -a 30 fp32 2 65 random >"$dir/kinds"
grep -q '^fp32 (2,65) random .* rope local=sliding:w=3: .* kernels, 0 failed' "$dir/kinds" || {
  cat "$dir/kinds" >&2
  exit 1
}
"$bin/cuda_plans" -t cpu -n 2 -L 2 -W 16 fp32 1 65 strided
"$bin/cuda_plans" -t cpu -v 43690 -L 2 -W 16 fp32 1 65 strided

# A wrong command line is a failure, not an empty success.
for wrong in '-s 9-3' '-s kinds' '-p 4/4' '-i nonsense' '-c prx'; do
  # shellcheck disable=SC2086
  if "$bin/cuda_segments" -t cpu $wrong fp32 1 8 full; then
    echo "accepted: $wrong" >&2
    exit 1
  fi
done
"$bin/fuseplan" mask strided -s 65 --npy "$dir/mask.npy" -q >"$dir/out"
"$bin/cuda_segments" -t cpu -s 3-4 -W 16 fp32 1 65 "file:$dir/mask.npy"
