#!/bin/sh
# Analyses the program's C files with gcc -fanalyzer, cppcheck and clang-tidy, and the tests' with clang-tidy, and runs
# the suites of what has threads under ThreadSanitizer.  Needs cppcheck beside what `./run check` installs.
# Prints what they find; exit 1 if there is anything.  A finding that is none gets an assertion or a
# comment at its line, a check that is wrong everywhere a line here.
# usage: tests/lint/analyse.sh
set -eu
cd "$(dirname "$0")/../.."
build=$PWD/build/release
cmake --preset release -DFUSEPLAN_TESTS=ON >/dev/null
cmake --build --preset release
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
jobs=$(nproc)

# program_files: the C files of the program.
program_files() {
  tests/lint/files.sh '^(base|layer|codegen|bench|db|model|search|cmd)/.*\.c$' | tr '\0' '\n'
}

# gcc 12 takes what json_unpack() and sqlite fill for uninitialised; the sanitizers and clang see to that.
# shellcheck disable=SC2016
gcc_analyzer() {
  jq -r --arg root "$PWD/" '.[] | select(.file | ltrimstr($root) | startswith("tests/") | not) |
    .directory + "\t" + .command' "$build/compile_commands.json" |
    sed 's/ -o [^ ]*\.o -c / -UNDEBUG -O1 -fanalyzer -Wno-analyzer-use-of-uninitialized-value -S -o \/dev\/null /' |
    tr '\t\n' '\0\0' |
    xargs -0 -P "$jobs" -n 2 sh -c 'cd "$0" && eval "$1" 2>&1 || :' | grep -e Wanalyzer -e 'error:'
}

# Suppressed: functions that are not reentrant, as one thread alone calls them; and what cppcheck 2.10 gets
# wrong: variables that a pointer fills, libraries that stay loaded, descriptors opened twice in one chain of
# conditions, strsep() and getopt_long() used for what they change.
cppcheck_program() {
  # shellcheck disable=SC2046
  cppcheck --quiet -j "$jobs" --std=c11 --library=posix --library=gnu --enable=warning,portability \
    --suppress=readdirCalled --suppress=getpwuidCalled --suppress=getgrgidCalled --suppress=uninitvar \
    --suppress=resourceLeak --suppress=ignoredReturnValue --suppress=invalidPointerCast \
    --suppress=unknownMacro --inline-suppr -D_GNU_SOURCE -I. --template='{file}:{line}: {message} [{id}]' \
    $(program_files) 2>&1
}

# As `./run lint`, without the analyzer's bound.
clang_tidy_program() {
  program_files | xargs -P "$jobs" -n 4 clang-tidy --quiet --config="$(sed '/^ExtraArgs:/d' .clang-tidy)" \
    -p "$build" 2>/dev/null | grep -E '(warning|error):'
}

# Of the tests: all checks of the program, but for numbers that sscanf() reads from what a test wrote.
# Golden files are emitted.
clang_tidy_tests() {
  tests/lint/files.sh '^tests/.*\.c$' |
    xargs -0 -P "$jobs" -n 4 clang-tidy --quiet --checks=-cert-err34-c -p "$build" 2>/dev/null |
    grep -E '(warning|error):'
}

for analyser in gcc_analyzer cppcheck_program clang_tidy_program clang_tidy_tests; do
  echo "$analyser"
  $analyser | sort -u | tee -a "$out/found"
done
[ ! -s "$out/found" ] || exit 1
cmake --preset tsan >/dev/null
cmake --build --preset tsan
ctest --preset tsan -R '^(check_progress|check_ticker|check_reference|check_replay|cmd_progress)$'
