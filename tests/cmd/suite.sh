# What the scripts of this folder share; they source it, with FUSEPLAN as their first argument.  It leads into an empty
# directory, which goes at the end: home, database and cache are there.
# shellcheck shell=sh
set -eu
PATH=$(cd "$(dirname "$1")" && pwd):$PATH
tests=$(realpath "$(dirname "$0")/..")
schemas=$tests/../docs/schemas
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cd "$root"
export PATH HOME="$root" FUSEPLAN_DB="$root/suite.db" FUSEPLAN_CACHE="$root/cache" FUSEPLAN_CONFIG=off LC_ALL=C
unset FUSEPLAN_WISDOM CFLAGS LDFLAGS LDLIBS
# shared with other suites: what they compiled
mkdir cache
ln -s "$tests/cached.sh" cached
# make reads the backslashes, and optimises nothing
# shellcheck disable=SC2089,SC2090
export MAKEFLAGS="CC=$root/cached\ cc CFLAGS=-O0\ -march=native\ -fopenmp"
[ -z "${FUSEPLAN_TEST_BINARIES:-}" ] || ln -s "$FUSEPLAN_TEST_BINARIES" cache/binaries

# Where the commands' own standard error is redirected, this is not.
exec 9>&2
fail() {
  echo "FAILED: $*" >&9
  [ ! -s said ] || cat said >&9
  exit 1
}

# expect CODE COMMAND...: that it exits so; what it prints is in `out`, and what it says in `said`.
expect() {
  wanted=$1 code=0
  shift
  "$@" >out 2>said || code=$?
  [ "$code" -eq "$wanted" ] || fail "exit $code, expected $wanted: $*"
}

# refused CODE TEXT COMMAND...: that, and that it says so on standard error
refused() {
  ends=$1 text=$2
  shift 2
  expect "$ends" "$@"
  grep -q -- "$text" said || fail "does not say '$text': $*"
}

# as_schema NAME FILE: that JSON is as docs/schemas/NAME.json says.
as_schema() { "$tests/cmd/check_json.py" "$schemas/$1.json" "$2" || fail "not as the schema $1 says: $2"; }

# change DATABASE SQL: as a user does it; VACUUM renews the checksums
change() { sqlite3 "$1" "$2; VACUUM"; }

# use_fake_gpu DIR KERNELS: the driver in DIR takes the place of the real one; nvcc writes kernels that are `right`, or
# write `nothing`.
use_fake_gpu() {
  export PATH="$root:$PATH" LD_LIBRARY_PATH="$root:$1" CUDA_HOME="$1"
  for name in libnvrtc.so libnvrtc.so.12 libnvrtc.so.13; do : >"$name"; done # hides those of this machine
  cat >nvcc <<END
#!/bin/sh
[ "\$1" = --version ] && { echo 'Cuda compilation tools, release 13.0, V0'; exit; }
while [ \$# -gt 1 ]; do [ "\$1" = -o ] && out=\$2; shift; done
echo 'fake $2' >"\$out"
! grep -q stamped_kernel "\$1" || echo stamped >>"\$out"
END
  chmod +x nvcc
}

# use_fake_hopper DIR: an H200 for fp16, without cuBLASLt, so that kernels are ours
use_fake_hopper() {
  export FUSEPLAN_LOCK_DIR="$root" FUSEPLAN_PASS="${FUSEPLAN_PASS:-FAKE_*}" FAKE_GPU=h200 FAKE_DTYPE=fp16
  use_fake_gpu "$1" right
  for name in libcublasLt.so libcublasLt.so.12 libcublasLt.so.13; do : >"$name"; done
}
