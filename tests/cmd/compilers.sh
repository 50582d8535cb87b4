#!/bin/sh
# compilers.sh FUSEPLAN: each C compiler that is here compiles the sources of plans on a CPU without a warning, for two
# standards and for SSE alone and this machine's instructions; builds a library of them; and builds plans that a worker
# finds right.
# shellcheck disable=SC2086 # variables that are not quoted are words
set -eu
. "$(dirname "$0")/suite.sh"
layer='--target cpu -b 2 -s 100 -H 2 -W 16 -L 2 -m strided'
late='-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wundef -Wformat=2 -Wvla -Werror'
warnings="$late -Wpedantic -Wstrict-prototypes -Wmissing-prototypes"

# Between them these have each kind of stage, and the hand-written attention.  Options are words.
for value in 41115 32768 45738; do
  fuseplan export $value $layer --packed -q -o "exported/$value"
done
sources=$(cksum exported/*/*.c | awk '!seen[$1, $2]++ { print $3 }') # plans share most of them
set=
[ "$(uname -m)" != x86_64 ] || set=-march=x86-64-v2 # this machine's come below

# compile COMPILER OPTION...: a source without a warning.
compile() {
  "$@" -fno-math-errno -fno-trapping-math -fopenmp -fPIC $warnings || fail "$*"
}

tried=
for compiler in gcc clang; do
  printf '#include <cblas.h>\n#include <omp.h>\nint main(void) { return omp_get_num_procs() < 1; }\n' >have.c
  "$compiler" -fopenmp -o have have.c >said 2>&1 || {
    echo "not here: $compiler, or its OpenMP"
    continue
  }
  tried="$tried $compiler"
  for file in $sources; do
    case $file in
    */segment_*) # to the end, as some warnings come late
      compile "$compiler" -std=c17 -O1 $set -c -o segment.o "$file"
      ;;
    *) compile "$compiler" -std=c11 -fsyntax-only "$file" ;; # no other source asks for instructions
    esac
  done
  make -s -C exported/41115 CC="$compiler" || fail "$compiler builds no library"
  exported/41115/example >out || fail "the library of $compiler does not run"
  # bench verifies what it times, here segments of this machine's instructions, which have no warnings either
  FUSEPLAN_CC="$compiler -std=c11 $late" fuseplan bench 41115 32768 45738 $layer --baseline none -q >out 2>&1 ||
    fail "$compiler: $(cat out)"
  grep -q failed out && fail "$compiler: $(cat out)"
  FUSEPLAN_CC=$compiler fuseplan doctor >out || fail "$compiler: $(cat out)"
  grep -q "^ok  *compiler  *$compiler " out || fail "doctor does not name $compiler: $(cat out)"
done
[ -n "$tried" ] || fail "there is no compiler"

# doctor tries what plans need: a compiler that knows all but a builtin of the kernels does not serve.
cat >lacking <<'END'
#!/bin/sh
exec cc -D__builtin_shuffle=unknown_shuffle -D__builtin_shufflevector=unknown_shuffle -Werror=implicit-function-declaration "$@"
END
chmod +x lacking
if FUSEPLAN_CC="$root/lacking" fuseplan doctor >out; then
  fail "doctor takes a compiler that builds no plan"
fi
grep -q unknown_shuffle out || fail "doctor does not say what the compiler lacks: $(cat out)"

# One that worked, until its headers were removed.
cat >worked <<END
#!/bin/sh
[ ! -e "$root/removed" ] || [ "\$*" = --version ] || { echo "no stdint.h" >&2 && exit 1; }
exec cc "\$@"
END
chmod +x worked
FUSEPLAN_CC="$root/worked" fuseplan doctor >out || fail "doctor: $(cat out)"
touch removed
if FUSEPLAN_CC="$root/worked" fuseplan doctor >out; then
  fail "doctor takes a compiler that worked once"
fi
grep -q 'no stdint.h' out || fail "doctor does not say what the compiler lacks now: $(cat out)"
echo "compilers:$tried"
