#!/bin/sh
# parts.sh BIN FAKE_GPU: device.sh and its scripts pass over nothing that failed, with stand-ins for programs of BIN and
# for tools; programs of this folder neither, on the stand-in of a GPU.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=$1 fake=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export FUSEPLAN_CACHE="$dir/cache" CUDA_VISIBLE_DEVICES=0,1
mkdir "$dir/bin" "$dir/tools" "$dir/cache"

fail() {
  echo "FAILED: $*"
  [ ! -e "$dir/said" ] || tail -n 40 "$dir/said"
  exit 1
}

# stand_in FILE <TEXT: a shell script.
stand_in() {
  { echo '#!/bin/sh' && cat; } >"$dir/$1"
  chmod +x "$dir/$1"
}

# fails COMMAND...: that it does, and says what it prints if not.
fails() {
  if "$@" >"$dir/said" 2>&1; then
    fail "no failure: $*"
  fi
}

# says TEXT [HOW_OFTEN]: that the last command did.
says() {
  [ "$(grep -c -e "$1" "$dir/said")" -eq "${2:-1}" ] || fail "it does not say, ${2:-1} times: $1"
}

# ---- verify.sh: with $BAD some of the commands are wrong, each in its way

stand_in bin/cuda_segments <<'EOF'
taskset -cp $$ >>"$0.cores"
echo "$CUDA_VISIBLE_DEVICES" >>"$0.gpus"
case $BAD,$* in
some*'-c quick_gelu -s 11-11 fp16'*) echo 'FAILED: fp16 (3,70) full: 11-11 generated: wrong result' && failed=1 ;;
some*'-c quick_gelu -s 11-11 bf16'*) exit ;;
some*'-c quick_gelu -s 11-11 tf32'*) echo 'about to crash' && kill -SEGV $$ ;;
*'-c quick_gelu -s 11-11 fp32'*) echo 'refused: fp32 (3,70) full: 7-7 library algorithm=12: there are 8 algorithms' ;;
late*1-6*) : >"$0.late" && sleep 1000 ;;
esac
echo "fp16 (2,100) full with lengths: 3 kernels, ${failed:-0} failed, 0 refused, largest error 0.0005 of 0.002 allowed;" \
  "built in 1.0 s, the oracle and the first one 2.0 s, the others 3.0 s"
exit ${failed:-0}
EOF
verify() {
  BAD=$1 PATH="$dir/tools:$PATH" "$here/verify.sh" "$dir/bin"
}
verify none >"$dir/said" || fail "verify.sh finds something"
says '^\([0-9]*\) of \1 runs ended .* 0 wrong$'
says '^| fp16 all | \([0-9]*\) | .* | 0 | 0 | 0 | 0.25 | '
says '^1 refused: library: there are N algorithms$'
[ "$(sort -u "$dir/bin/cuda_segments.gpus" | tr '\n' ' ')" = '0 1 ' ] || [ "$(nproc)" -eq 1 ] || fail "GPUs are idle"
! sed 's/.*: //' "$dir/bin/cuda_segments.cores" | grep -v '^[0-9]*\([,-][0-9]*\)\{0,1\}$' || fail "a run has more cores"
fails verify some
says '^FAILED: .* 11-11 generated: wrong result <- cuda_segments -c quick_gelu -s 11-11 fp16 3 70 full -a 40$'
says '^FAILED: exit status 0:  <- cuda_segments -c quick_gelu .* bf16 '
says '^FAILED: exit status -11: about to crash <- cuda_segments -c quick_gelu .* tf32 '
says '^\([0-9]*\) of \1 runs ended .* 3 wrong$'

# Parts that compute little run beside it, and a signal ends all with what is known.
stand_in bin/cuda_plans </dev/null
BAD=late timeout 1000 "$here/device.sh" "$dir/bin" repeat verify values >"$dir/said" 2>&1 &
until [ -e "$dir/bin/cuda_segments.late" ] && grep -q '^values: | values | [0-9]* | passed |$' "$dir/said"; do
  sleep 0.05
done
kill $!
! wait $! || fail "a signal is no failure"
says '^verify: | fp16 all '
says '^verify: \([0-9]*\) of [0-9]* runs ended .* 0 wrong$'
says '^| \(verify\|repeat\) | | FAILED: it left no row |$' 2
says '^| values | [0-9]* | passed |$'

# The first run of a code compiles it, and others wait; those of other code do not.
stand_in bin/cuda_segments <<'EOF'
case $* in
*100*) [ -e "$0.compiled" ] || echo 'FAILED: nobody has compiled it' ;;
*64*) while [ ! -e "$0.other" ]; do sleep 0.05; done && : >"$0.compiled" ;;
*) : >"$0.other" ;;
esac
echo "fp16 (2,100) full: 1 kernels, 0 failed, 0 refused, largest error 0 of 1 allowed; built in 1 s, the oracle and the" \
  "first one 2 s, the others 3 s"
EOF
printf '%s\n' 'fp16 1 64 full' 'fp16 2 100 causal -H 2 -a 30' 'bf16 1 8 full' >"$dir/lines"
[ "$(nproc)" -eq 1 ] || "$here/side_by_side.py" "$dir/bin" <"$dir/lines" >"$dir/said" || fail "runs that share code"

# ---- sanitize.sh: with $BAD a tool finds something, one counts something, and one sums nothing up and is blind

stand_in bin/cuda_segments <<'EOF'
echo "fp16 (2,100) full: 3 kernels, 0 failed, 0 refused, largest error 0 of 1 allowed; built in 1.0 s, the oracle and the" \
  "first one 2.0 s, the others 3.0 s"
EOF
stand_in tools/compute-sanitizer <<'EOF'
while [ "$1" != --log-file ]; do
  [ "$1" != --tool ] || tool=$2
  shift
done
exec >"$2"
echo '========= COMPUTE-SANITIZER'
shift 2
case $BAD,$tool,$* in
*memcheck*nvcc*) echo '========= Invalid __global__ write of size 4 bytes' ;;
*racecheck*nvcc*) echo '========= Error: Race reported between Write access at segment+0x10 and Write access' ;;
none,synccheck*nvcc*) echo '========= Barrier error detected. Divergent thread(s) in warp' ;;
some,memcheck,*128' fp16 1 700'*)
  printf '========= Invalid __shared__ read of size 2 bytes\n=========     at segment_00_01+0x40 in a.cu\n' ;;
some,racecheck,*128' fp16 1 700'*) echo '========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)' ;;
some,synccheck,*128' fp16 1 700'*) exec "$@" >&2 ;;
esac
echo "========= ERROR SUMMARY: 0 errors"
"$@" >&2
EOF
stand_in tools/nvcc </dev/null
sanitize() {
  BAD=$1 PATH="$dir/tools:$PATH" "$here/sanitize.sh" "$dir/bin"
}
sanitize none >"$dir/said" 2>&1 || fail "sanitize.sh finds something"
says '^[a-z]*check finds the planted fault: FAILED: ' 3
says '^\([0-9]*\) of \1 runs ended .* 0 wrong$'
fails sanitize some
says '^FAILED: memcheck: Invalid __shared__ read of size 2 bytes at segment_00_01+0x40 in a.cu <- compute-sanitizer .* 1 700'
says '^FAILED: racecheck counts 2 <- '
says '^FAILED: synccheck sums nothing up <- '
says '^FAILED: synccheck does not find the planted fault'
says ' 3 wrong$'

# ---- device.sh: where no program works, no part passes

for program in bin/fuseplan bin/fuseplan-worker bin/cuda_segments bin/cuda_plans bin/cuda_hog tools/nvidia-smi tools/nvcc \
  tools/compute-sanitizer; do
  echo 'exit 1' | stand_in $program
done
device() {
  PATH="$dir/tools:$PATH" "$here/device.sh" "$dir/bin" "$@"
}
fails device verify nonsense
says "no part 'nonsense'"
parts=$(sed -n 's/.*there are: //p' "$dir/said")
# shellcheck disable=SC2086
fails device $parts
sed -n '/^| part |/,$p' "$dir/said" >"$dir/table"
says ' passed |' 0
mv "$dir/table" "$dir/said"
for part in $parts; do
  says "^| $part | [0-9]* | FAILED |$"
done
fails device
sed -n '/^| part |/,$p' "$dir/said" >"$dir/table"
mv "$dir/table" "$dir/said"
for part in doctor memory sanitize; do # without names the usual ones, whose list has two lines
  says "^| $part | [0-9]* | FAILED |$"
done
fails "$here/faults.sh" "$dir/bin" nonsense

# ---- cuda_segments: code that cannot be built, and kernels that were all refused

export FAKE_GPU=h200 FUSEPLAN_CACHE="$dir/fake_cache" LD_LIBRARY_PATH="$fake" CUDA_HOME="$fake"
stand_in tools/nvcc <<'EOF'
[ "$1" = --version ] && echo 'Cuda compilation tools, release 13.0, V0' && exit
while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
echo 'fake right' >"$out"
! grep -q hopper_gemm "$1" || echo 'ptxas info : Potential Performance Loss: wgmma.mma_async instructions are serialized' >&2
EOF
segments() {
  PATH="$dir/tools:$PATH" "$bin/cuda_segments" -C nvcc -H 2 -W 16 "$@"
}
FAKE_DTYPE=fp16 fails segments -s 7-7 -k 0 -i hopper_gemm fp16 1 64 full
says '^FAILED: .* would not overlap'
FAKE_DTYPE=fp32 FAKE_GPU_BYTES=700000 fails segments -s 10-11 -i generated -p 15/24 fp32 1 64 full
says '^FAILED: .* all 1 kernels were refused$'
FAKE_DTYPE=fp32 fails segments -s 1-1 -i generated -i hopper_gemm fp32 1 64 full
says "^FAILED: 'hopper_gemm' serves nothing of '1-1'"
