#!/bin/sh
# Hands random input to what reads TARGET, under libFuzzer and both sanitizers; without TARGET it names them.  Needs
# clang and libclang-rt-dev.
# Keeps the inputs that reach new code in build/fuzz/corpus/TARGET, and one that ends the target as
# build/fuzz/corpus/TARGET.crash-*: move that to tests/stress/fuzz/corpus/TARGET once the defect is mended.
# usage: tests/stress/fuzz/fuzz.sh [TARGET [RUNS]]
set -eu
cd "$(dirname "$0")/../../.."
target=${1:-}
case $target in
import | database) runs=${2:-200000} ;;
*) runs=${2:-10000000} ;;
esac
seeds=$PWD/tests/stress/fuzz/corpus/$target
found=$PWD/build/fuzz/corpus/$target
if [ -z "$target" ] || [ ! -d "$seeds" ]; then
  echo "fuzz.sh: name one of these targets: $(cd tests/stress/fuzz/corpus && echo *)" >&2
  exit 2
fi
mkdir -p "$found"
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
exec "build/fuzz/bin/fuzz_$target" "-runs=$runs" -timeout=25 -max_len=4096 "-artifact_prefix=$found." "$found" "$seeds"
