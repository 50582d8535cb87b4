#!/bin/sh
# grid_on_cpu.sh BIN: grid.sh searches on the CPU target; a stand-in for python3 prints what bench/peers.py would.
set -u
bin=$1
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/programs" "$dir/cache"
export FUSEPLAN_DB="$dir/db" FUSEPLAN_CACHE="$dir/cache"
[ -z "${FUSEPLAN_TEST_BINARIES:-}" ] || ln -s "$FUSEPLAN_TEST_BINARIES" "$dir/cache/binaries"

# It notes its arguments, prints a line for each mask, whose ratio depends on the mask alone, and writes FILE.csv.
cat >"$dir/programs/python3" <<'END'
#!/bin/sh
echo "$*" >>"$GRID_ARGUMENTS"
while [ $# -gt 1 ]; do
  case $1 in
    -m) masks=$2 ;;
    -o) file=$2 ;;
  esac
  shift
done
echo "microseconds, a stand-in"
echo "shape  mask  fuseplan  flex  ratio"
echo variant,dtype,batch,seq_len,mask,us >"$file"
for mask in $(echo "$masks" | tr , ' '); do
  case $mask in
    full) ratio=1.20 ;;
    causal) ratio=- ;; # no variant gave a time
    strided) ratio='2.00 (1.99 to 2.01)' ;;
    *) ratio=8.00 ;;
  esac
  echo " (${1%x*},${1#*x})  $mask  10.00  20.00  $ratio"
  echo "flex,fp16,${1%x*},${1#*x},$mask,20.00" >>"$file"
done
END
chmod +x "$dir/programs/python3"
export GRID_ARGUMENTS="$dir/arguments" GRID_VARIANTS=flex GRID_SECONDS=20 \
  GRID_OPTIONS='--target cpu --heads 1 --head-size 16 --ffn 16 --layers 1 --budget 1'

# grid EXIT POINT...: what it prints goes to $dir/out.
grid() {
  want=$1
  shift
  PATH=$dir/programs:$PATH "$here/grid.sh" "$bin" "$dir/peers.csv" "$@" >"$dir/out" 2>&1
  got=$?
  [ $got -eq "$want" ] || fail "exit $got, expected $want"
}

fail() {
  echo "FAILED: $*"
  cat "$dir/out"
  exit 1
}

# has PATTERN FILE
has() {
  grep -q -e "$1" "$2" || fail "no '$1' in $(basename "$2")"
}

# Points of one size are measured together, whatever is between them.
grid 0 '1 8 full' '1 9 strided' '1 8 strided' '1 8 causal' '1 9 sliding'
time='[0-9.]\{1,\}'
has "^(1,8) strided: plan [0-9]\{1,\}, $time us a layer in its finals, $time to $time, searched for [0-9]\{1,\} s\$" "$dir/out"
has '^full and causal: 1.20 times as fast .* at least 1.20, 1 points$' "$dir/out"
has '^sparse masks: 3.17 times as fast .* at least 2.00, 3 points$' "$dir/out" # the third root of 2 * 2 * 8
has ' --variants flex -m full,strided,causal -o .* 1x8$' "$dir/arguments"
has ' --variants flex -m strided,sliding -o .* 1x9$' "$dir/arguments"
[ "$(grep -c '^flex' "$dir/peers.csv") $(grep -c '^variant' "$dir/peers.csv")" = '5 1' ] ||
  fail "the lines in peers.csv: $(cat "$dir/peers.csv")"

# A point that cannot be searched is named, and the others are measured.
grid 1 '1 8 nonsense' '1 8 full'
has "'nonsense'" "$dir/out"
has '^full and causal: 1.20 times as fast' "$dir/out"
