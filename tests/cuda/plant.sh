#!/bin/sh
# plant.sh DIR FAULT=I-J...: writes DIR/nvcc, an nvcc that plants faults into the kernels of segments.
#   hang   never ends                     wild   writes to address 8
#   lost   writes none of its results     race   all threads write one word of shared memory
set -eu
dir=$(cd "$1" && pwd)
shift
nvcc=$(command -v nvcc) || {
  echo "plant.sh: there is no nvcc on PATH" >&2
  exit 1
}

body() {
  case $1 in
  hang) echo 'for (;;) __nanosleep(1000);' ;;
  wild) echo '*(volatile int *)8 = 1;' ;;
  lost) echo 'return;' ;;
  race) echo '__shared__ volatile int raced; raced = threadIdx.x;' ;;
  *)
    echo "plant.sh: no fault '$1'" >&2
    exit 1
    ;;
  esac
}

for fault; do
  segment=${fault#*=} text=$(body "${fault%=*}")
  # the line after a kernel's name opens its body
  printf '/^segment_%02d_%02d_/{n;s/.*/{ %s/;}\n' "${segment%-*}" "${segment#*-}" "$text"
done >"$dir/faults.sed"

cat >"$dir/nvcc" <<EOF
#!/bin/sh
for argument; do
  case \$argument in *.cu) sed -i -f '$dir/faults.sed' "\$argument" ;; esac
done
exec '$nvcc' "\$@"
EOF
chmod +x "$dir/nvcc"
