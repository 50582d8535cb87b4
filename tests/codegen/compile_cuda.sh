#!/bin/sh
# compile_cuda.sh EMIT_CUDA WORKER KERNELS sample|all: compiles emitted CUDA sources with nvcc, a
# warning being an error, one of lost speed too, and with NVRTC where nvcc's toolkit has it.  Needs
# no GPU.  Exit 77: skipped.
set -eu
emit=$1 worker=$(realpath "$2") kernels=$(realpath "$3") what=$4
if ! command -v nvcc >/dev/null; then
  echo "skipped: there is no nvcc on PATH"
  exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$emit" "$what" "$dir" >"$dir/list"
cd "$dir"
# Segments that have one text are one source.
sha256sum -- *.cu >texts
awk 'NR == FNR { text[$2] = $1; next } { name = $1; $1 = text[name] } seen[$0]++ { print name }' texts list |
  while read -r again; do
    rm "$again"
    sed -i "/^$again /d" list
  done
echo '#include <cublasLt.h>' >headers.cu
if ! nvcc -E headers.cu >headers.out 2>&1; then
  echo "there is no cublasLt.h: sources that call cuBLASLt are left out"
  sed -i '/_library/d' list
fi
# The PTX of these is looked at below.
sed -i -e '/^segment_.*_hopper_gemm/s/$/ --keep/' -e '/^00_01_.*_hopper_gemm/s/$/ --keep/' list
# All others go eight at a time into one source, each in a namespace of its own: headers and programs take a third of a
# second each time.
awk '/ --keep$/ || /_library/ || /_stamped/ || /^sizes/ { print; next }
  n[$2]++ % 8 == 0 { of[$2] = "joined_" (++files) ".cu"; print of[$2], $2 }
  {
    text = of[$2] ".text"
    print "namespace source_" NR " {\n#line 1 \"" $1 "\"" >>text
    while ((getline line <$1) > 0) {
      sub(/^extern "C" __global__/, "__global__", line)
      print line >>text
    }
    print "}" >>text
    close(text)
    close($1)
  }' list >compiled
for text in ./joined_*.text; do
  { grep '^#include' "$text" | sort -u && cat "$text"; } >"${text%.text}"
done
# shellcheck disable=SC2016
xargs -P "$(nproc)" -L 1 sh -c '
  nvcc -cubin -std=c++17 -Werror all-warnings -Xptxas --warning-as-error -I "$0" -I "$0/.." \
    "$2" $3 -o "$1.cubin" "$1" >"$1.log" 2>&1 || { echo "$1 $2:"; cat "$1.log"; exit 1; }' \
  "$kernels" <compiled
# A wait that ptxas injects is one that the source forgot.
if grep -H -e 'Potential Performance Loss' -e 'warpgroup[.]' ./*.log; then
  exit 1
fi
# Nothing may touch the sums between the products of a step: ptxas says nothing, and the result is wrong.
for source in ./segment_*_hopper_gemm*.cu; do
  awk '/wgmma[.]fence/ { within = 1 } /wgmma[.]commit/ { within = 0; steps++ } within && /mov/ { moves++ }
    END { if (!steps || moves) { print FILENAME ": " steps+0 " steps, " moves+0 " moves"; exit 1 } }' "${source%.cu}.ptx"
done
# Rows of heads are stored 16 bytes at once; of an assignment nvcc makes four stores there.
for source in ./00_01_*_hopper_gemm*.cu; do
  [ ! -e "$source" ] ||
    awk '/st[.]global[.]v4/ { whole++ } /st[.]global[.][ubf]/ { parts++ }
      END { if (!whole || parts) { print FILENAME ": stores of heads: " whole+0 " whole, " parts+0 " in parts"; exit 1 } }' \
      "${source%.cu}.ptx"
done
nvrtc=$(dirname "$(realpath "$(command -v nvcc)")")/../lib64/libnvrtc.so
if [ -e "$nvrtc" ]; then
  # Host code of a library and the checks of sizes are nvcc's alone.  Of a sample the first golden source of each header:
  # NVRTC lacks other headers than nvcc, and compiles what they hold as nvcc does.
  grep -v -e _library -e '^sizes' list | sed 's/ --keep$//' >nvrtc_list
  if [ "$what" = sample ]; then
    seen=
    grep '^segment_' nvrtc_list | while read -r source options; do
      headers="$options: $(grep '^#include' "$source")"
      case $seen in *"$headers"*) ;; *) echo "$source $options" ;; esac
      seen="$seen $headers"
    done >first
    mv first nvrtc_list
  fi
  # shellcheck disable=SC2016
  xargs -P "$(nproc)" -L 1 sh -c '
    "$0" --nvrtc "$1" -std=c++17 "$4" -I "$2" -I "$2/.." -o "$3.nvrtc" "$3" >"$3.log" 2>&1 ||
      { echo "$3 $4 by NVRTC:"; cat "$3.log"; exit 1; }' "$worker" "$nvrtc" "$kernels" <nvrtc_list
else
  echo "there is no $nvrtc: nothing is compiled with NVRTC"
fi
echo "$(wc -l <list) sources compiled for $(sed 's/.*-arch=\([^ ]*\).*/\1/' list | sort -u | tr '\n' ' ')"
