#!/bin/sh
# install.sh BUILD RUN: './run install' puts what is installed where it can be found, and './run uninstall' removes
# all of it and nothing else.  Both refuse what they do not know, as other commands do.
set -eu
build=$1 run=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
prefix="$root/a b,c&d/fuseplan" # a directory of the user's with this name stays

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

mkdir -p "$prefix/bin" "$prefix/share/man"
before=$(cd "$prefix" && find . | sort)
# `run` would build the tests' build again: what is built stays, and BUILD is what it installs.
mkdir "$root/tools"
cat >"$root/tools/cmake" <<END
#!/bin/sh
case \$1 in
--install)
  case \$* in *"$root"*) ;; *) echo "outside: \$*" >&2 && exit 1 ;; esac
  shift 2 && exec "$(command -v cmake)" --install "$build" "\$@"
  ;;
esac
END
chmod +x "$root/tools/cmake"
unset PREFIX DESTDIR

# run_in DIR ARGUMENT...: as typed there.
run_in() {
  (cd "$1" && shift && env PATH="$root/tools:$PATH" "$run" "$@")
}

run_in "$root/a b,c&d" install PREFIX=fuseplan >"$root/said"
grep -q "^'$prefix/bin' is not on your PATH: export PATH='$prefix/bin':\$PATH\$" "$root/said" ||
  fail "nothing says that the program is not on PATH: $(cat "$root/said")"
PATH=$PATH:$prefix/bin run_in "$root/a b,c&d" install PREFIX=fuseplan | grep "not on your PATH" && fail "it is on PATH"
for file in bin/fuseplan libexec/fuseplan/fuseplan-worker share/man/man1/fuseplan.1 share/man/man1/fuseplan-search.1 \
  share/bash-completion/completions/fuseplan share/zsh/site-functions/_fuseplan \
  share/fish/vendor_completions.d/fuseplan.fish share/fuseplan/python/pyproject.toml \
  share/fuseplan/python/fuseplan/encoder.py share/doc/fuseplan/README.md; do
  [ -s "$prefix/$file" ] || fail "$file is not installed"
done
for pack in "$(dirname "$run")"/db/wisdom/*.ndjson; do
  [ ! -e "$pack" ] || cmp "$pack" "$prefix/share/fuseplan/wisdom/${pack##*/}" || fail "$pack is not installed"
done
FUSEPLAN_CACHE=$prefix/cache FUSEPLAN_DB=$prefix/db "$prefix/bin/fuseplan" \
  bench 0 -b 1 -s 8 -m full -H 1 -W 8 -L 1 --baseline none -q >/dev/null || fail "the installed program finds no worker"
mkdir -p "$prefix/share/fuseplan/wisdom"
echo damaged >"$prefix/share/fuseplan/wisdom/damaged.ndjson"
(unset FUSEPLAN_WISDOM && FUSEPLAN_DB=$prefix/db "$prefix/bin/fuseplan" query -b 1 -s 9 -H 1 -W 8 -L 1 2>&1 || :) |
  grep -q "a pack is left out: .*share/fuseplan/wisdom/damaged.ndjson" || fail "the installed program reads no packs"
rm -rf "$prefix/cache" "$prefix/db"* "$prefix/share/fuseplan/wisdom/damaged.ndjson"
rmdir "$prefix/share/fuseplan/wisdom" 2>/dev/null || : # unless packs come with the program
PREFIX="../a b,c&d/fuseplan" run_in "$root/tools" uninstall >/dev/null
for dir in $(cd "$prefix" && find . -type d); do
  case $dir in */fuseplan) fail "'$dir' is left" ;; esac
done
for entry in $before; do
  [ -d "$prefix/$entry" ] || fail "'$entry' was there before"
done
[ -z "$(find "$prefix" -type f -o -type l)" ] || fail "left: $(find "$prefix" -type f -o -type l)"
run_in / uninstall "PREFIX=$prefix" 2>/dev/null && fail "removed what is not there"

# Of a prefix the argument counts; what is not known changes nothing.
PREFIX=$root/variable run_in / install "PREFIX=$root/argument" >/dev/null
if [ -e "$root/variable" ] || [ ! -e "$root/argument/bin/fuseplan" ]; then fail "the argument PREFIX does not count"; fi
for wrong in 'install DIR' 'install PREFIX=' 'uninstall prefix=/x' 'demo x' 'build --verbose' 'check release' 'lint base/buf.c' \
  'nothing' ''; do
  code=0
  # the words are arguments
  # shellcheck disable=SC2086
  run_in / $wrong >"$root/out" 2>"$root/said" || code=$?
  [ $code -eq 2 ] || fail "./run $wrong: exit $code, expected 2"
  [ ! -s "$root/out" ] || fail "./run $wrong did something: $(cat "$root/out")"
  grep -q "^run: .*run --help'" "$root/said" || [ -z "$wrong" ] || fail "./run $wrong: no message"
done
for command in demo check install check-gpu; do
  TMPDIR=/nowhere run_in / $command --help >"$root/out"
  run_in / help | cmp - "$root/out" || fail "./run $command --help: no help alone"
done

if command -v dpkg-deb && command -v dpkg-shlibdeps && command -v file; then
  cpack -B "$root/package" --config "$build/CPackConfig.cmake" >"$root/said" || fail "no package: $(cat "$root/said")"
  dpkg-deb -c "$root"/package/*.deb >"$root/said"
  for file in bin/fuseplan libexec/fuseplan/fuseplan-worker share/man/man1/fuseplan-search.1 \
    share/bash-completion/completions/fuseplan share/zsh/vendor-completions/_fuseplan \
    share/fish/vendor_completions.d/fuseplan.fish share/fuseplan/python/fuseplan/encoder.py; do
    grep -q " [.]/usr/$file" "$root/said" || fail "the package has no /usr/$file"
  done
  grep -e site-functions -e /installed "$root/said" && fail "the package has what only ./run install places"
fi >/dev/null
echo "all well"
