#!/bin/sh
# stages.sh SOURCE: which files `./run` checks and formats, and what it says at the end, in a small tree with tools of
# the test's own.
set -eu
source=$(cd "$1" && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cd "$root"
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

mkdir -p tree/tests/lint tree/tests/golden tree/base tree/.ci tree/docs tree/library tree/docs/library tools
for folder in bench cmd codegen db kernels layer model search; do mkdir "tree/$folder"; done
cp "$source/run" tree/
cp "$source/tests/lint/files.sh" tree/tests/lint/
for file in base/a.c base/b.h tests/golden/g.c README.md .ci/run tests/lint/lint.sh; do echo '#!/bin/sh' >"tree/$file"; done
chmod +x tree/tests/lint/lint.sh

# ---- files

# expect WHERE: those of the project, and none of its user's.
expect() {
  tree/tests/lint/files.sh . | tr '\0' '\n' | LC_ALL=C sort >got
  printf '%s\n' .ci/run README.md base/a.c base/b.h base/new.c run tests/lint/files.sh tests/lint/lint.sh |
    diff - got || fail "$1: these are not the project's files"
}

theirs='mine.c library/encoder.c'
add_others() {
  for file in $theirs base/new.c; do echo >"tree/$file"; done
}

add_others
expect 'without git'
if command -v git >/dev/null; then
  git init -q tree
  git -C tree add README.md run base/a.c base/b.h .ci tests
  echo >tree/docs/library/encoder.c # beside nothing that is tracked
  echo >tree/base/gone.c
  git -C tree add base/gone.c
  rm tree/base/gone.c
  expect 'with git'
  rm -rf tree/.git tree/docs/library
  git init -q . # another repository, above an archive
  expect 'in an archive'
  rm -rf .git
fi

# ---- stages

for tool in cmake ctest clang-format clang-tidy shellcheck apt-get; do
  printf '#!/bin/sh\n[ ! -e "%s/fault.%s" ] || . "%s/fault.%s"\n' "$root" $tool "$root" $tool >tools/$tool
  chmod +x tools/$tool
done
export PATH="$root/tools:$PATH"

# ends LINE COMMAND: the last line that `./run COMMAND` prints, a pattern of expr.
ends() {
  code=0
  tree/run "$2" >said 2>&1 || code=$?
  expr "$(tail -n 1 said)" : "$1\$" >/dev/null || fail "./run $2 ends in '$(tail -n 1 said)', expected '$1'"
  case $code/$1 in
  0/*failed* | [1-9]*/*passed*) fail "./run $2 exits $code" ;;
  esac
  ! grep -q 'warnings generated' said || fail "noise: $(cat said)"
}

ends 'run: lint passed: setup [0-9]* s, build [0-9]* s, format [0-9]* s, lint [0-9]* s' lint
ends 'run: test passed: .* lint [0-9]* s, suites [0-9]* s' test
ends 'run: check passed: .* lint [0-9]* s, suites [0-9]* s, sanitizers [0-9]* s' check
cat >fault.clang-tidy <<'END'
echo '12 warnings generated.' >&2
echo '/tree/base/a.c:1:2: error: a finding [a-check,-warnings-as-errors]'
echo '/tree/base/a.c:3:2: note: a remark'
exit 1
END
ends 'run: check failed in lint: clang-tidy finds faults in 1 file (above)' check
grep -q 'error: a finding' said || fail "the finding is not printed"
echo 'echo "Segmentation fault"; exit 139' >fault.clang-tidy
ends 'run: lint failed in lint: clang-tidy failed with exit status [0-9]* (above)' lint
rm fault.clang-tidy
printf 'echo base/a.c:1: this is wrong: do it right\necho base/b.h:2: this too\nexit 1\n' >tree/tests/lint/lint.sh
ends 'run: check failed in lint: tests/lint/lint.sh finds faults in 2 files (above)' check
: >tree/tests/lint/lint.sh
echo 'echo; echo "In ./run line 7:"; exit 1' >fault.shellcheck
ends 'run: check failed in lint: shellcheck finds faults in 1 file (above)' check
rm fault.shellcheck
echo 'echo "base/a.c:1:1: error: code should be clang-formatted" >&2; exit 1' >fault.clang-format
ends 'run: check failed in format: clang-format finds faults in 1 file (above)' check
rm fault.clang-format
cat >fault.ctest <<END
log=$root/tree/build/\$2/Testing/Temporary
[ \$2 = asan ] || exit 0
mkdir -p \$log
printf '3:check_buf\n7:cmd_man\n' >\$log/LastTestsFailed.log
exit 8
END
ends 'run: check failed in sanitizers: of the preset asan these suites fail (above): check_buf cmd_man' check
echo 'case $* in *--build*) exit 1 ;; esac' >fault.cmake
ends 'run: check failed in build: the preset release does not build (above)' check
rm fault.cmake

# What the demo ends with works from where it was called.
cp -r tree "an owner's tree"
mkdir -p "an owner's tree/build/release/bin"
printf '#!/bin/sh\n' >"an owner's tree/build/release/bin/fuseplan"
chmod +x "an owner's tree/build/release/bin/fuseplan"
script -qec "\"an owner's tree/run\" demo" /dev/null </dev/null | tr -d '\r' | sed -n 's/^  \(.* install\) .*/\1/p' >step
sh -c "$(cat step) --help" | grep -q '^usage: ./run' || fail "the demo ends with '$(cat step)'"

# concerns PATTERN FILE: the suites that `./run test` asks for where this file is new.
concerns() {
  mkdir -p "tree/$(dirname "$2")"
  : >"tree/$2"
  tree/run test >said 2>&1 || fail "./run test: $(cat said)"
  grep -qxF -e "$1" asked || fail "of $2 '$(cat asked)' are asked for, expected '$1'"
  rm "tree/$2"
}
if command -v git >/dev/null; then
  # shellcheck disable=SC2016
  printf 'for last; do :; done\necho "$last" >"%s/asked"\n' "$root" >fault.ctest
  git init -q tree
  git -C tree add .
  git -C tree -c user.name=a -c user.email=a@b commit -qm all
  git -C tree branch -f origin/main
  concerns '^(cmd|page|docs|stress)$' cmd/new.c
  concerns '^(search|docs|stress)$' tests/search/new.c
  concerns . tests/golden/new.c
  concerns . base/new.c
  concerns . tests/new.h
fi
echo "all well"
