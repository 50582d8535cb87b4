# A tree that was moved with its build directory.
mkdir -p build/release
echo CMAKE_HOME_DIRECTORY:INTERNAL=/no/tree >build/release/CMakeCache.txt
cp "$(dirname "$0")/../../../run" .
./run build 2>&1 | sed "s,$PWD,HERE,"
