#!/bin/sh
# export.sh FUSEPLAN SOURCE written|built: exports libraries for the CPU.  `written`: what the program writes and reads,
# weights too.  `built`: uses them as other programs do, with a sanitizer.
# shellcheck disable=SC2086 # variables that are not quoted are words
set -eu
. "$(dirname "$0")/suite.sh"
source=$2 part=$3
flags='-O0 -march=native -fopenmp -fsanitize=address -g1 -Werror'

value=$(fuseplan translate --segments 0-14 | cut -d ' ' -f 1)
fuseplan export "$value" --target cpu -b 2 -s 100 -m causal -H 2 -W 8 -L 3 -q -o library
make -s -j 2 -C library CFLAGS="$flags"
fuseplan export "$value" --target cpu -b 2 -s 100 -m causal -H 2 -W 8 -L 3 --packed -q -o packed

if [ "$part" = written ]; then
  if [ "$(uname -m)" = x86_64 ]; then
    fuseplan export "$value" --target cpu -b 1 -s 8 -H 2 -W 8 --arch x86-64-v3 -q -o moves
    MAKEFLAGS='' make -n -C moves | grep -q -- '-march=x86-64-v3 ' || fail "the Makefile has not the processors of --arch"
    MAKEFLAGS='' make -n -C moves ARCH=x86-64-v2 | grep -q -- '-march=x86-64-v2 ' || fail "the Makefile takes no ARCH"
    grep -q '^  set(FUSEPLAN_ARCH x86-64-v3)' moves/CMakeLists.txt || fail "CMake has not the processors of --arch"
    MAKEFLAGS='' make -n -C packed | grep -q -- '-march=native ' || fail "without --arch a library is for another machine"
    grep -q "'make ARCH=" packed/Makefile || fail "the Makefile does not say how to change the processors"
  fi
  OMP_WAIT_POLICY=passive library/example >out 2>said
  grep -q "^plan $value, batch 2, sequence length 100, 3 layers: .* ms" out || fail "example: $(cat out)"
  grep -q "^example: 'OMP_WAIT_POLICY=passive' is not used" said || fail "example: $(cat said)"
  for file in library/segment_*.c library/given.c library/weights_read.c; do
    cc -Ofast -fopenmp -fsyntax-only "$file" 2>said && fail "$file computes by -ffast-math"
    grep -q 'error: #error "compile without -ffast-math and -Ofast' said || fail "$(cat said)"
  done

  library/example >/dev/full 2>said && fail "example: its output is lost, and it succeeds"
  grep -q "^example: cannot write the time: No space left" said || fail "$(cat said)"
  library/example --weight model.safetensors 2>said && fail "it takes unknown options"

  # Weights of a HuggingFace model, by its own config.json; the chain is the config's.  The oracle and the plan compute
  # with the same weights, and nothing is stored.
  vit=$source/tests/data/families/vit
  gzip -dc "$vit/model.safetensors.gz" >vit.safetensors
  fuseplan bench "$value" --target cpu -b 9 -s 10 --model "$vit/config.json" --weights vit.safetensors --baseline none \
    --dump vit -q >out || fail "bench of ViT: $(cat out)"
  # By its directory the same weights are taken.
  mkdir vit_model
  cp "$vit/config.json" vit_model
  cp vit.safetensors vit_model/model.safetensors
  fuseplan bench "$value" --target cpu -b 9 -s 10 --model vit_model --baseline none --dump vit_again -q >out ||
    fail "bench of ViT's directory: $(cat out)"
  cmp vit/layer1.wo.npy vit_again/layer1.wo.npy || fail "bench takes other weights than those of the directory"
  [ ! -e "$FUSEPLAN_DB" ] || fail "bench of a model's weights stores times"
  grep -q '"name": "pre"' vit/workload.json || fail "$(cat vit/workload.json)"
  fuseplan bench "$value" --target cpu -b 1 -s 8 -H 2 -W 8 --weights vit.safetensors -q 2>said &&
    fail "bench takes layers of another family"
  grep -q "those of ViT, with norms before attention and feed-forward network; expected layers without" said ||
    fail "$(cat said)"
  # A GTE's rotations have a factor, which its weights do not say.
  gzip -dc "$source/tests/data/families/gte/model.safetensors.gz" >gte.safetensors
  fuseplan bench "$value" --target cpu -b 1 -s 8 --model "$source/tests/data/families/gte/config.json" \
    --weights gte.safetensors --baseline none -q >out || fail "bench of GTE: $(cat out)"

  # The example of a library of ViT's layers runs its weights, and refuses a BERT's.
  fuseplan export "$value" --target cpu -b 9 -s 10 --model "$vit/config.json" -q -o vit_library
  make -s -j 2 -C vit_library CFLAGS="$flags"
  vit_library/example --weights vit.safetensors >out || fail "example of ViT"
  grep -q "^plan $value, .*, 2 layers: .* ms" out || fail "example --weights: $(cat out)"
  gzip -dc "$source/tests/data/families/bert/model.safetensors.gz" >bert.safetensors
  vit_library/example --weights bert.safetensors 2>said && fail "a ViT's library takes a BERT's weights"
  grep -q "those of BERT, without norms before" said || fail "$(cat said)"
  head -c 2000 vit.safetensors >short.safetensors
  vit_library/example --weights short.safetensors 2>said && fail "it runs with a short file"
  grep -q "^example: 'short.safetensors': the header should have" said || fail "$(cat said)"
  vit_library/example --weights vit.safetensors --prefix bert 2>said && fail "it takes any prefix"
  grep -q "no layers have the prefix 'bert'" said || fail "$(cat said)"
  # It reads and writes arrays.
  vit_library/example --weights vit.safetensors --input vit/x.npy --output y.npy >out || fail "example --input"
  head -c 128 vit/y.npy | cmp -n 128 - y.npy || fail "the example writes another array than bench"
  tail -c +129 vit/y.npy >y
  tail -c +129 y.npy >z
  "$source/tests/cmd/near.sh" y z 1e-5 || fail "the example computes something else than bench"
  head -c 500 vit/x.npy >cut.npy
  vit_library/example --input cut.npy 2>said && fail "the example reads an array that is truncated"
  grep -q "'cut.npy' is truncated: its shape takes [0-9]* bytes of data, found 372" said || fail "$(cat said)"
  { cat vit/x.npy && echo; } >long.npy
  vit_library/example --input long.npy 2>said && fail "the example reads an array with bytes behind it"
  grep -q "'long.npy' is too long: its shape takes \([0-9]*\) bytes of data, found more than \1\$" said || fail "$(cat said)"
  LC_ALL=C sed '1s/), }   /, 1), }/' vit/x.npy >four.npy
  vit_library/example --input four.npy 2>said && fail "the example reads an array of four dimensions"
  grep -q "'four.npy' is no NumPy array (B,S,D)" said || fail "$(cat said)"
  vit_library/example --input vit/mask.npy 2>said && fail "the example reads any array"
  grep -q "'vit/mask.npy' is no NumPy array (B,S,D) of fp32" said || fail "$(cat said)"
  library/example --input vit/x.npy 2>said && fail "the example runs an array of any shape"
  grep -q "'vit/x.npy' is (9,10,[0-9]*); no plan of the library runs it, whose hidden size is 16" said || fail "$(cat said)"
  vit_library/example --input none.npy 2>said && fail "the example runs without its input"
  grep -q "cannot read 'none.npy': No such file" said || fail "$(cat said)"

  # ModernBERT's layers are of two kinds, and before the first stands no norm.
  modernbert=$source/tests/data/families/modernbert
  gzip -dc "$modernbert/model.safetensors.gz" >modernbert.safetensors
  fuseplan export "$value" --target cpu -b 3 -s 30 --model "$modernbert/config.json" -q -o modernbert
  make -s -j 2 -C modernbert CFLAGS="$flags"
  modernbert/example --weights modernbert.safetensors >out || fail "example of ModernBERT"

  # What can be written.
  for wrong in Bert 1st a-b ''; do
    fuseplan export 5 --target cpu -b 1 -s 8 -q --name "$wrong" -o no 2>said && fail "name '$wrong'"
    [ ! -e no ] || fail "it wrote for the name '$wrong'"
  done
  # A packed plan.
  grep -q '\.packed = 1' packed/plan_b2_s100.c || fail "the plan's table does not say packed"
  grep -q '\.packed = 0' library/plan_b2_s100.c || fail "the plan's table says packed"
  # The example has functions of these names, of its own and of the system.
  for name in check close; do
    fuseplan export "$value" --target cpu -b 1 -s 8 -H 1 -W 4 -L 1 -q --name $name -o $name
    cc -std=gnu17 -fopenmp -fsyntax-only $name/example.c || fail "the library's name '$name'"
  done
  # For a static link it names cuBLASLt only where a plan calls it, and C++'s library, which nvcc's code calls.
  for linked in 'sm_80 -lcublasLt -lcudart -lstdc++' 'sm_90a -lcudart -lstdc++'; do
    fuseplan export 41115 --target cuda --arch "${linked%% *}" -b 1 -s 8 -q -o cuda
    grep -q -x "Libs.private: ${linked#* }" cuda/encoder.pc.in || fail "pkg-config --static, ${linked%% *}"
  done
  grep -q 'find_dependency(CUDAToolkit)' cuda/CMakeLists.txt || fail "the CMake package does not find what it links"
  grep -q 'CUDA_ARCHITECTURES "90a-real")' cuda/CMakeLists.txt || fail "a project around it chooses the library's GPUs"

  # nvcc that is not on PATH, here one that only writes down how it is called.
  if PATH=/usr/bin:/bin command -v nvcc >/dev/null; then
    echo "skipped: nvcc is in /usr/bin"
  else
    mkdir -p 'a toolkit/bin'
    ln -s "$source/tests/cuda/runtime" 'a toolkit/include'
    cat >'a toolkit/bin/nvcc' <<'END'
#!/bin/sh
printf '%s\n' "$0" "$@" >>"$CUDA_HOME/called"
while [ "$1" != -o ]; do shift; done
: >"$2"
END
    chmod +x 'a toolkit/bin/nvcc'
    fuseplan export 41115 --target cuda --arch sm_80 -b 1 -s 8 -q -o called
    PATH=/usr/bin:/bin CUDA_HOME="$root/a toolkit" make -s -j 2 -C called libencoder.so.1 CFLAGS='-O0 -DCUDART_VERSION=13000' ||
      fail "nvcc of CUDA_HOME"
    for word in "$root/a toolkit/bin/nvcc" "\"-rpath=$root/a toolkit/lib64\"" libencoder.so.1; do
      grep -qxF -e "$word" 'a toolkit/called' || fail "make does not call nvcc with $word"
    done
    for build in 'make -C called' 'cmake -S called -B called_build'; do
      PATH=/usr/bin:/bin CUDA_HOME="$root/none" $build >said 2>&1 && fail "$build: it builds without nvcc"
      tr -s ' \n' '  ' <said | grep -q "no nvcc found; install .* put nvcc on PATH, or name its directory with CUDA_HOME" ||
        fail "$build: $(cat said)"
    done
  fi
  echo "all well"
  exit
fi

# Public are the functions of the header, no more.
sed -n 's/^ENCODER_API .*[ *]\(encoder_[a-z_]*\)(.*/\1/p' library/encoder.h | sort >public
[ "$(wc -l <public)" -eq 10 ] || fail "the header has $(wc -l <public) functions"
nm -D --defined-only library/libencoder.so | awk '{ print $3 }' | grep -v -e '^__odr_asan' | sort | diff public - ||
  fail "not the header's functions are exported"
readelf -d library/libencoder.so | grep -q 'SONAME.*\[libencoder.so.1\]' || fail "soname"

cc -std=gnu17 $flags -Ilibrary -o use "$source/tests/cmd/library.c" library/libencoder.a -lopenblas -lm -pthread
./use y || fail "the library"
cc -std=gnu17 $flags -Ilibrary -o refused "$source/tests/cmd/refused.c" library/libencoder.a -lopenblas -lm
./refused || fail "what the library refuses"
cc -std=gnu17 $flags -Ilibrary -o embed "$source/tests/cmd/embed.c" library/libencoder.a -lopenblas -lm
./embed || fail "embeddings"
# A plugin's library stays when the plugin goes: OpenMP's threads wait in it.
cc -std=gnu17 $flags -fPIC -shared -Ilibrary -o plugin.so "$source/tests/cmd/refused.c" library/libencoder.so \
  -Wl,-rpath,"$root/library"
cat >host.c <<'END'
#include <dlfcn.h>
int main(void)
{
    void *plugin = dlopen("./plugin.so", RTLD_NOW);
    int (*use)(void) = plugin == 0 ? 0 : (int (*)(void))dlsym(plugin, "use");
    return use == 0 || use() != 0 || dlclose(plugin) != 0 || dlopen("./plugin.so", RTLD_NOW | RTLD_NOLOAD) != 0 ||
           dlopen("libencoder.so.1", RTLD_NOW | RTLD_NOLOAD) == 0;
}
END
cc $flags -o host host.c -ldl
./host || fail "dlclose() of a plugin"
# A packed plan gives the same, within the same memory of sanitizers.
make -s -j 2 -C packed libencoder.a CFLAGS="$flags"
cc -std=gnu17 $flags -Ipacked -o use_packed "$source/tests/cmd/library.c" packed/libencoder.a -lopenblas -lm -pthread
./use_packed z || fail "the packed library"
"$source/tests/cmd/near.sh" y z 1e-5 || fail "the packed library gives another result"

# Layers of other chains.
use_chain() {
  fuseplan export "$value" --target cpu -b 2 -s 100 -m causal -H 2 -W 8 -L 3 --packed "$@" -q -o chain
  make -s -j 2 -C chain libencoder.a CFLAGS="$flags"
  [ -e chain/encoder.py ] || fail "$*: no encoder.py"
  make -s -j 2 -C chain example CFLAGS="$flags"
  chain/example >said || fail "the example of $*: $(cat said)"
  cc -std=gnu17 $flags -Ichain -o use_chain "$source/tests/cmd/library.c" chain/libencoder.a -lopenblas -lm -pthread
  ./use_chain y || fail "the library of $*"
}
use_chain --norm pre
use_chain --norm pre --norm-kind rms --activation silu --gate --rope 100 --score-bias --hidden 24

fuseplan export "$value" --target cpu -b 1 -s 20,70 -H 2 -W 8 -L 3 --rope 100 --score-bias -q -o tables
make -s -j 2 -C tables libencoder.a CFLAGS="$flags"
cc -std=gnu17 $flags -Itables -o use_tables "$source/tests/cmd/tables.c" tables/libencoder.a -lopenblas -lm
./use_tables || fail "plans of several lengths with tables"

# The headers are for C++ too.
printf '#include "encoder.h"\n#include "weights.h"\n%s\n' 'int main() { weights w;
  int result = weights_load("none", nullptr, encoder_describe(), &w); weights_release(&w); return result != -1; }' >use.cc
c++ $flags -Wall -Wextra -Ilibrary -o use_cc use.cc library/weights*.o library/safetensors*.o library/libencoder.a \
  -lopenblas -lm
./use_cc || fail "the reader of weights in C++"

# Two libraries in one program, the other one of several sizes.
arch=native
[ "$(uname -m)" != x86_64 ] || arch=x86-64-v2
fuseplan export "$value" --target cpu -b 1,2 -s 4,8 -H 1 -W 4 -L 1 --arch $arch -q --name sizes -o sizes
make -s -j 2 -C sizes libsizes.a
cc -Isizes -o plans "$source/tests/cmd/sizes.c" sizes/libsizes.a -fopenmp -lopenblas -lm
./plans || fail "plans of several sizes"
# In its Python file HuggingFace's names stay.
grep -q 'model.encoder = Encoder(model' sizes/sizes.py || fail "sizes.py replaces no encoder"
grep -q '_space = "sizes_" + _hash_library()' sizes/sizes.py || fail "sizes.py: the operator's name"
if python=$("$source/tests/cmd/find_numpy.sh"); then
  make -s -C sizes libsizes.so
  "$python" -B "$source/tests/cmd/arrays.py" sizes || fail "sizes.py with NumPy"
else
  echo "skipped: no python3 has numpy, which Debian's python3-numpy installs"
fi
cat >both.c <<'END'
#include "encoder.h"
#include "sizes.h"
int main(void) { return !(encoder_describe()->heads == 2 && sizes_describe()->heads == 1 &&
                          encoder_workspace_bytes(1, 8) > sizes_workspace_bytes(1, 8)); }
END
cc $flags -Ilibrary -Isizes -o both both.c library/libencoder.a sizes/libsizes.a -lopenblas -lm
./both || fail "two libraries in one program"

# An installation that pkg-config finds.
prefix="$root/of A, B & C's"
make -s -C library install PREFIX="$prefix" CFLAGS="$flags"
eval "set -- $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs encoder)"
[ "$#: $*" = "3: -I$prefix/include -L$prefix/lib -lencoder" ] || fail "pkg-config: $*"
for file in include/encoder.h lib/libencoder.a lib/libencoder.so.1; do
  [ -e "$prefix/$file" ] || fail "make install: no $file"
done
# By CMake, with directories of other names.
"$source/tests/cmd/package.sh" sizes sizes "$source/tests/cmd/sizes.c" run || fail "the CMake package"
# Two of them are parts of one project, whose own code is C99, one source, and computes fast.
mkdir project
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.18)
project(project C)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_UNITY_BUILD ON)
add_subdirectory(../library library)
add_subdirectory(../sizes sizes)
add_executable(both ../both.c)
target_link_libraries(both encoder sizes)
END
{
  cmake -S project -B project/build -DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$root/project" -DCMAKE_C_FLAGS="-Werror -Ofast" &&
    cmake --build project/build -j 2 && cmake --install project/build --prefix "$prefix/project"
} >said 2>&1 || fail "a CMake project with two libraries: $(cat said)"
project/both || fail "two libraries in one CMake project"
for built in "library/CMakeFiles/encoder native" "sizes/CMakeFiles/sizes $arch"; do
  grep -q -e "-march=${built#* } " "project/build/${built% *}_objects.dir/flags.make" || fail "not the processors of --arch: $built"
done
readelf -d "$prefix/project/lib/libencoder.so" | grep -q NODELETE || fail "CMake's library can be unloaded"
for name in encoder sizes; do
  for file in include/$name.h lib/lib$name.so lib/cmake/$name/$name-config.cmake lib/pkgconfig/$name.pc; do
    [ -e "$prefix/project/$file" ] || fail "a CMake project with two libraries installs no $file"
  done
done

# What make built is replaced with the sources, and what Python kept of them.
mkdir library/__pycache__
touch library/__pycache__/encoder.cpython-311.pyc
fuseplan export "$value" --target cpu -b 1 -s 8 -H 1 -W 4 -L 1 -q -o library
for left in libencoder.so __pycache__; do
  [ ! -e library/$left ] || fail "$left of the plan before is still there"
done
echo "all well"
