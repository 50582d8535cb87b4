#!/bin/sh
# A compiler that plants faults into sources: PLANTED of soak.py says which fail, and how.  A file beside it lets a
# candidate fail once.  Who kills compilers may kill sed: then this one is killed too, and does not build the segment
# without its fault.
dir=${0%/*}
src=
for arg; do case $arg in *.c) src=$arg ;; esac done
name=$([ -z "$src" ] || sed -n 's/^void segment_\([a-z0-9_]*\)(.*/\1/p' "$src") || kill -9 $$
case $name in
08_09*) fault='abort();' ;;
11_12*) fault='honest(a); a->tensor[13][3] *= 1.01f;' ;;
06_07*) fault='no_such_variable = 1;' ;;
10_11*) fault="if (unlink(\"$dir/crash\") == 0) abort(); honest(a);" ;;
09_10*)
  fault="if (unlink(\"$dir/daemon\") == 0 && fork() == 0) { setsid(); if (fork() == 0)"
  fault="$fault for (;;) pause(); _exit(0); } honest(a);"
  ;;
12_13*) fault="if (unlink(\"$dir/hang\") == 0) for (;;) pause(); honest(a);" ;;
*) exec cc "$@" ;;
esac
sed "s/^void segment_$name(/static void honest(/" "$src" >"$src.new" &&
  printf '#include <unistd.h>\nvoid segment_%s(const struct fp_args *a) { %s }\n' "$name" "$fault" >>"$src.new" &&
  mv "$src.new" "$src" && exec cc "$@"
