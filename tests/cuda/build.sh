# Builds exported CUDA libraries on the stand-in of CUDA's runtime; scripts source it with `source`, `runtime` and
# `sanitize` set as library.sh has them.
# shellcheck shell=sh disable=SC2154
stand_in=$source/tests/cuda/runtime

level=-O1
[ "$sanitize" = -g0 ] || level=-O0 # what warnings need optimisation, the release build finds

# object COMPILER... SOURCE: compiles it, unless the same text was compiled before, as most files of two libraries are.
mkdir -p objects
object() {
  for file; do :; done
  object=objects/$("$@" -E -P | cksum | tr ' ' -)
  [ -e "$object" ] || "$@" -c -o "$object"
  objects="$objects $object"
}

# build WHERE SOURCE...: a program on the library in WHERE, as nvcc would build it; without a source the generated one.
# cuda_version: of the runtime.
cuda_version=13000
build() {
  where=$1 objects='' version=-DCUDART_VERSION=$cuda_version
  shift
  for file in "$where"/segment_*.cu; do
    name=$(basename "$file" .cu)
    echo "$name" | sed 's/^segment_0*\([0-9]*\)_0*\([0-9]*\)_.*/X(encoder_&, \1, \2)/; s/, ,/, 0,/; s/, )/, 0)/
      s/^segment_.*/X(encoder_&, -1, -1)/'
  done >"$where/segments.inc"
  for file in embed lengths normalise quantise; do
    object c++ "$level" "$sanitize" "$version" -I"$where" -include "$stand_in/device.h" -x c++ "$where/$file.cu"
  done
  compile="cc -std=gnu17 $level $sanitize $version -Wall -Wextra -Wno-unknown-pragmas -Werror -I$where -I$stand_in"
  for file in "$stand_in/stubs.c" "$where"/[cdglmpr]*.c "$where/e4m3.c"; do
    # shellcheck disable=SC2086
    object $compile "$file"
  done
  # shellcheck disable=SC2086
  $compile -I"$source/tests/cmd" -I"$source" -o "$where/run" "$@" -x none $objects "$runtime" \
    -Wl,-rpath,"$(dirname "$runtime")" -lm -pthread
}
