#!/bin/sh
# package.sh LIBRARY NAME PROGRAM run|build: installs the exported LIBRARY by CMake, into directories of other names
# than `make install`.  Builds PROGRAM, a C file, on the package that find_package() finds, shared and static, and on
# what pkg-config prints, and runs it.
set -eu
library=$1 name=$2 program=$(realpath "$3") run=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
prefix="$dir/A & B" # CMake cannot link with libraries below a comma: it names them in -Wl,-rpath,

# logged COMMAND...: prints what it says only if it fails.
logged() {
  "$@" >"$dir/log" 2>&1 || {
    cat "$dir/log" >&2
    echo "FAILED: $*" >&2
    exit 1
  }
}

logged cmake -S "$library" -B "$dir/build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_INSTALL_PREFIX="$prefix" \
  -DCMAKE_INSTALL_LIBDIR=lib64 -DCMAKE_INSTALL_INCLUDEDIR=headers
logged cmake --build "$dir/build" -j 2
logged cmake --install "$dir/build"

mkdir "$dir/user"
cat >"$dir/user/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.18)
project(user C)
find_package($name REQUIRED)
foreach(library $name ${name}_static)
  add_executable(on_\${library} $program)
  target_link_libraries(on_\${library} PRIVATE $name::\${library})
endforeach()
END
logged cmake -S "$dir/user" -B "$dir/user/build" -D"${name}_DIR=$prefix/lib64/cmake/$name"
logged cmake --build "$dir/user/build"

export PKG_CONFIG_PATH="$prefix/lib64/pkgconfig"
eval "logged cc -o '$dir/user/build/on_pkg_config' $(pkg-config --cflags "$name") '$program' $(pkg-config --libs "$name")" \
  -Xlinker "'-rpath=$prefix/lib64'"
for built in "on_$name" "on_${name}_static" on_pkg_config; do
  [ "$run" != run ] || logged "$dir/user/build/$built"
done
