#!/bin/sh
# Hands random input to what reads TARGET, under libFuzzer and both sanitizers; without TARGET it names them.  Needs
# clang and libclang-rt-dev.  `model` has no sanitizer, which would leave its memory unbounded.
# Keeps the inputs that reach new code in build/fuzz/corpus/TARGET, and one that ends the target as
# build/fuzz/corpus/TARGET.crash-*: move that to tests/fuzz/corpus/TARGET once the defect is mended.
# usage: tests/fuzz/fuzz.sh [TARGET [RUNS]]
set -eu
cd "$(dirname "$0")/../.."
target=${1:-}
case $target in
import | database | model) runs=${2:-200000} ;;
*) runs=${2:-10000000} ;;
esac
seeds=$PWD/tests/fuzz/corpus/$target
found=$PWD/build/fuzz/corpus/$target
if [ -z "$target" ] || [ ! -d "$seeds" ]; then
  echo "fuzz.sh: name one of these targets: $(cd tests/fuzz/corpus && echo *)" >&2
  exit 2
fi
mkdir -p "$found"
if [ "$target" = model ]; then
  cmake --preset release -DFUSEPLAN_TESTS=ON >/dev/null
  cmake --build --preset release --target fuzz_model
  fuzz=$PWD/build/release/bin/fuzz_model
  cd "$found"
  exec "$fuzz" "-runs=$runs" "-seed=$(date +%s)" "$seeds"
fi
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
exec "build/fuzz/bin/fuzz_$target" "-runs=$runs" -timeout=25 -max_len=4096 "-artifact_prefix=$found." "$found" "$seeds"
