# Builds exported CUDA libraries on the stand-in of CUDA's runtime; scripts source it with `source`, `runtime` and
# `sanitize` set as library.sh has them.
# shellcheck shell=sh disable=SC2154,SC2086
stand_in=$source/tests/cuda/runtime

level=-O1
[ "$sanitize" = -g0 ] || level=-O0 # what warnings need optimisation, the release build finds

# What suites compile is kept for all of them, by compiler, options, headers and text.
mkdir -p "${FUSEPLAN_TEST_BINARIES:-.}/objects"
[ -e objects ] || ln -s "$FUSEPLAN_TEST_BINARIES/objects" objects
compilers=$(cc --version && c++ --version && cat "$source/tests/cuda/build.sh")

# object FILE: compiles it.
object() {
  case $1 in
  *.cu) set -- c++ "$level" "$sanitize" "$version" -I"$where" -include "$stand_in/device.h" -x c++ "$1" ;;
  *) set -- $compile "$1" ;;
  esac
  "$@" -c -o "$where/new"
  mv "$where/new" "$object.$$"
  mv "$object.$$" "$object"
}

# build WHERE [example] [SOURCE...]: a program on the library in WHERE, as nvcc would build it: the library's example, of
# these sources, or without any the generated one.
# cuda_version: of the runtime.
cuda_version=13000
build() {
  where=$1 objects='' version=-DCUDART_VERSION=$cuda_version kept='[cdglmpr]*.c'
  shift
  [ "${1:-}" != example ] || { shift && kept="$kept example.c safetensors*.c weights*.c"; }
  printf '%s\n' "$where"/segment_*.cu | sed 's/.*\///; s/\.cu$//
    s/^segment_0*\([0-9]*\)_0*\([0-9]*\)_.*/X(encoder_&, \1, \2)/; s/, ,/, 0,/; s/, )/, 0)/
    s/^segment_merge_heads_.*/X(encoder_&, -2, -1)/; s/^segment_.*/X(encoder_&, -1, -1)/' >"$where/segments"
  sed "/\"segments.inc\"/{r $where/segments
    d;}" "$stand_in/stubs.c" >"$where/stubs.c"
  compile="cc -std=gnu17 $level $sanitize $version -Wall -Wextra -Wno-unknown-pragmas -Werror -I$where -I$stand_in"
  for_all=$({ echo "$compilers $level $sanitize $version" && cat "$where"/*.h "$stand_in"/*.h; } | sha256sum)
  texts=$(cd "$where" && sha256sum stubs.c $kept e4m3.c embed.cu lengths.cu normalise.cu quantise.cu)
  while read -r text file; do
    object=objects/${for_all%% *}-$text.o objects="$objects $object"
    [ -e "$object" ] || object "$where/$file"
  done <<END
$texts
END
  $compile -I"$source/tests/cmd" -I"$source" -o "$where/run" "$@" -x none $objects "$runtime" \
    -Wl,-rpath,"$(dirname "$runtime")" -lm -pthread
}
