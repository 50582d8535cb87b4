#!/bin/sh
# plant.sh DIR FAULT=I-J|all...: writes DIR/nvcc, an nvcc that plants faults into the kernels of a segment,
# which others may share, or into all kernels.
#   hang   never ends                     wild   writes to address 8
#   odd    writes words at odd addresses   trap   executes an instruction that ends the kernel
#   lost   writes none of its results     race   all threads write one word of shared memory
#   part   has some threads of a warp wait at a barrier for all
#   late   lets the next kernel begin at once, then sleeps: no fault, but shows kernels that do not wait
#   stale  the same, and does not wait for the kernel in front of it
set -eu
dir=$(cd "$1" && pwd)
shift
nvcc=$(command -v nvcc) || {
  echo "plant.sh: there is no nvcc on PATH" >&2
  exit 1
}

# The line that opens a kernel's body, as sed replaces it.
open_body() {
  case $1 in
  hang) echo 's/.*/{ for (;;) __nanosleep(1000);/' ;;
  wild) echo 's/.*/{ *(volatile int *)8 = 1;/' ;;
  odd) echo 's/.*/{ __shared__ int words[2]; *(volatile int *)((char *)words + threadIdx.x % 4) = 1;/' ;;
  trap) echo 's/.*/{ asm volatile("trap;");/' ;;
  lost) echo 's/.*/{ return;/' ;;
  race) echo 's/.*/{ __shared__ volatile int raced; raced = threadIdx.x;/' ;;
  part) echo 's/.*/{ if (threadIdx.x < 16) __syncthreads();/' ;;
  late) echo 's/.*/{ asm volatile("griddepcontrol.launch_dependents;"); __nanosleep(100000);/' ;;
  stale) echo "$(open_body late);n;n;n;s/fp::await_dependencies();//" ;;
  *)
    echo "plant.sh: no fault '$1'" >&2
    exit 1
    ;;
  esac
}

# The script for a source: sed replaces the line after a kernel's name, which opens its body.
for fault; do
  segment=${fault#*=} script="/^segment_/{n;$(open_body "${fault%=*}");}"
  case $segment in
  all) echo "sed -i '$script' \"\$1\"" ;;
  *) echo "! grep -q 'Operators $segment of' \"\$1\" || sed -i '$script' \"\$1\"" ;;
  esac
done >"$dir/faults.sh"

cat >"$dir/nvcc" <<EOF
#!/bin/sh
for argument; do
  case \$argument in *.cu) sh '$dir/faults.sh' "\$argument" ;; esac
done
exec '$nvcc' "\$@"
EOF
chmod +x "$dir/nvcc"
