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
"$bin/cuda_segments" -t cpu -c pre+rms+silu+gate+rope+bias -s 1-6,10-11 -H 2 -W 16 -a 30 fp32 2 65 random
"$bin/cuda_segments" -t cpu -c rope -l sliding:w=3 -s 1-6 -H 2 -W 16 -a 30 fp32 2 65 random >"$dir/kinds"
grep -q '^fp32 (2,65) random .* rope local=sliding:w=3: .* kernels, 0 failed' "$dir/kinds" || {
  cat "$dir/kinds" >&2
  exit 1
}
"$bin/cuda_plans" -t cpu -n 2 -L 2 -W 16 fp32 1 65 strided

# sanitize.sh, by stand-ins of the tool and of what it runs: two of 32 cores for each process, and a finding fails.
mkdir "$dir/fake"
cat >"$dir/fake/taskset" <<'EOF'
#!/bin/sh
[ "$1" != -cp ] || exec echo "pid $2's current affinity list: 2-17,32-47"
echo "$2" >>"$0.cores"
shift 2
exec "$@"
EOF
cat >"$dir/fake/compute-sanitizer" <<'EOF'
#!/bin/sh
while [ "$1" != --log-file ]; do shift; done
case $2 in *"$FINDING"*) echo '========= Invalid write' ;; *planted*) echo '========= Race' ;; esac >"$2"
echo '========= COMPUTE-SANITIZER' >>"$2"
shift 2
exec "$@"
EOF
echo 'echo "3 kernels, 0 failed, largest error 0 of 1 allowed; "' >"$dir/fake/cuda_segments"
: >"$dir/fake/nvcc"
chmod +x "$dir/fake/"*
sanitize() {
  FINDING=$1 PATH="$dir/fake:$PATH" CUDA_VISIBLE_DEVICES=0,1 "$(dirname "$0")/sanitize.sh" "$dir/fake" >"$dir/sanitized"
}
if ! sanitize none || sanitize memcheck.tf32.3 || ! grep -q '^| memcheck | 66 | 0 | 1 |$' "$dir/sanitized" ||
  grep -v '^[0-9]*,[0-9]*$' "$dir/fake/taskset.cores" ||
  [ "$(tr , '\n' <"$dir/fake/taskset.cores" | sort -u | wc -l)" -ne 32 ]; then
  echo 'sanitize.sh on a CPU:' && cat "$dir/sanitized" "$dir/fake/taskset.cores"
  exit 1
fi

# A wrong command line is a failure, not an empty success.
for wrong in '-s 9-3' '-p 4/4' '-i nonsense' '-c prx'; do
  # shellcheck disable=SC2086
  if "$bin/cuda_segments" -t cpu $wrong fp32 1 8 full; then
    echo "accepted: $wrong" >&2
    exit 1
  fi
done
"$bin/fuseplan" mask strided -s 65 --npy "$dir/mask.npy" -q >"$dir/out"
"$bin/cuda_segments" -t cpu -s 3-4 -W 16 fp32 1 65 "file:$dir/mask.npy"
