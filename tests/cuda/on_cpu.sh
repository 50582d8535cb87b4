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
"$bin/cuda_segments" -t cpu -s kinds -p 3/20 -b fp32 1 8 full
"$bin/cuda_segments" -t cpu -s 7-8,12-13 -H 3 -W 16 -F 40 fp32 2 33 full >"$dir/sizes"
grep -q '^fp32 (2,33) full H=3 W=16 F=40: .* kernels, 0 failed' "$dir/sizes" || {
  cat "$dir/sizes" >&2
  exit 1
}
"$bin/cuda_plans" -t cpu -n 2 -L 2 -W 16 fp32 1 65 strided

# A wrong command line is a failure, not an empty success.
for wrong in '-s 9-3' '-s nonsense' '-p 4/4' '-t tpu' '-H 0' '-F x' '-i nonsense'; do
  # shellcheck disable=SC2086
  if "$bin/cuda_segments" -t cpu $wrong fp32 1 8 full; then
    echo "accepted: $wrong" >&2
    exit 1
  fi
done
"$bin/fuseplan" mask strided -s 65 --npy "$dir/mask.npy" -q >"$dir/out"
"$bin/cuda_segments" -t cpu -s 3-4 -W 16 fp32 1 65 "file:$dir/mask.npy"
"$bin/cuda_segments" -t cpu fp32 1 8 file:missing.npy 2>&1 | grep -q "'missing.npy'" || {
  echo "a mask without a file is not refused by name" >&2
  exit 1
}

# products.sh compares the fastest schedules; a stand-in for cuda_segments prints their times.
mkdir "$dir/programs"
cat >"$dir/programs/cuda_segments" <<'END'
#!/bin/sh
for word; do [ "$word" != full ] || break; rows=$word; done
for time in 7-7,hopper_gemm,tile=a,12.00 7-7,hopper_gemm,tile=b,10.00 7-8,hopper_gemm,tile=a,11.00 \
  7-8,library,algorithm=0,22.00 12-12,hopper_gemm,tile=a,20.00 12-13,hopper_gemm,tile=a,20.00; do
  echo "time,fp16 (1,$rows) full,$time,0,0"
done
echo "6 kernels, 0 failed"
[ "$rows" != 5000 ]
END
chmod +x "$dir/programs/cuda_segments"
here=$(cd "$(dirname "$0")" && pwd)
"$here/products.sh" "$dir/programs" 512 4096 >"$dir/products" 2>"$dir/said"
for line in '| 512 | 7-8 | 11.00 | 7-8 by library | 22.00 | 0.500 |' '| 4096 | 7-8 | 11.00 | 7-7 by hopper_gemm | 10.00 | 1.100 |' \
  'cuBLASLt, fewer than 4096 rows: 0.500 times as long, 1 ratios' 'bias and residual: 1.049 times as long, 2 ratios'; do
  grep -qxF "$line" "$dir/products" || {
    echo "no '$line' in:" >&2
    cat "$dir/products" >&2
    exit 1
  }
done
if "$here/products.sh" "$dir/programs" 4096 5000 >"$dir/products" 2>"$dir/said"; then
  echo "kernels that failed are no failure of products.sh" >&2
  exit 1
fi
