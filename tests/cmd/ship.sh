#!/bin/sh
# ship.sh FUSEPLAN: from a model's directory to a library that is verified on its weights, for the CPU.
# shellcheck disable=SC2086 # $ship is words
set -eu
. "$(dirname "$0")/suite.sh"
families=$tests/data/families
mkdir bert
cp "$families/bert/config.json" bert
gzip -dc "$families/bert/model.safetensors.gz" >bert/model.safetensors
ship='fuseplan ship --target cpu --budget 2 -q'

echo "one size"
expect 0 $ship --model bert -b 1 -s 8 -o library --format json
cp out out.json
as_schema ship out.json
jq -e 'map(.row) == ["unfused", "best", "library"] and (map(.error <= .allowed) | all) and .[1].error > 0 and
  .[2].error == 0 and .[0].value == 43690 and .[1].value == .[2].value and .[1].speedup > 0' out.json >jq.txt ||
  fail "rows: $(cat out.json)"
for file in libencoder.a libencoder.so example encoder.h manifest.json; do
  [ -e library/$file ] || fail "no library/$file"
done
[ ! -e library/verified ] || fail "what was compared is still there"
expect 0 fuseplan ship --target cpu --budget 2 --model bert -b 1 -s 8 -o library
run=$(sed -n "s/^fuseplan: '\(.*\)' runs it; 'library\/encoder.h' and 'library\/encoder.py' .*/\1/p" said)
[ -n "$run" ] || fail "no command runs the library: $(cat said)"
$run >out || fail "$run"

echo "several sizes, in the place of it"
expect 0 $ship --model bert -b 1,2 -s 8 -o library
[ "$(grep -c '^ *[12]  *8  *\(unfused\|best\|library\) ' out)" -eq 6 ] || fail "rows: $(cat out)"
jq -e '.plans | length == 2' library/manifest.json >jq.txt || fail "the library has not both sizes"
[ -e library/example ] || fail "what was built is gone"
before=$(cat library/manifest.json library/libencoder.a | cksum)

# unchanged: the directory is as it was, and nothing is beside it.
unchanged() {
  [ "$(cat library/manifest.json library/libencoder.a | cksum)" = "$before" ] || fail "$1: the directory was changed"
  [ ! -e new ] || fail "$1: it wrote"
  [ -z "$(find . -maxdepth 2 -name '.*' ! -name . -newer out)" ] || fail "$1: it left something"
}

# A make of ours, in front of the system's.
real=$(command -v make)
mkdir bin
make_does() {
  printf '#!/bin/sh\n%s\n' "$1" >bin/make
  chmod +x bin/make
}

echo "a library that computes something else"
# its example hands its input on
# shellcheck disable=SC2016
make_does "$real"' "$@" && cat >"$3/example" <<"END"
#!/bin/sh
while [ $# -gt 0 ]; do
  [ "$1" != --input ] || x=$2
  [ "$1" != --output ] || y=$2
  shift
done
cp "$x" "$y"
END'
PATH=$root/bin:$PATH expect 3 $ship --model bert -b 1 -s 8 -o library
grep -q "nothing is written: the library's result differs from that of plan [0-9]* by .* of its norm; 4e-05 is allowed" said ||
  fail "$(cat said)"
unchanged "wrong"

echo "a library whose example does not run"
# shellcheck disable=SC2016
make_does "$real"' "$@" && printf "#!/bin/sh\nexit 1\n" >"$3/example"'
for sizes in 1 1,2; do
  PATH=$root/bin:$PATH refused 1 'example failed' $ship --model bert -b $sizes -s 8 -o library
  unchanged "example"
done

echo "a library that cannot be built"
make_does 'echo "no such compiler" >&2; exit 2'
for directory in library new; do
  PATH=$root/bin:$PATH refused 1 "the library cannot be built, and nothing is written: make failed" \
    $ship --model bert -b 1 -s 8 -o $directory
  unchanged "not built"
done

echo "interrupt"
# shellcheck disable=SC2016
make_does 'kill -INT $PPID; exec sleep 5'
PATH=$root/bin:$PATH expect 130 fuseplan ship --target cpu --budget 2 --model bert -b 1 -s 8 -o new
grep -q 'nothing is written; what the search measured is stored, and the same command goes on from here' said ||
  fail "$(cat said)"
unchanged "interrupted"
# The signal comes right before make's end is waited for.
cat >early.c <<'END'
#define _GNU_SOURCE
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
pid_t waitpid(pid_t pid, int *status, int options)
{
    static int calls;
    if (calls++ == 0)
        raise(SIGTERM);
    return wait4(pid, status, options, NULL);
}
END
cc -shared -fPIC -o early.so early.c
make_does 'exec sleep 100'
PATH=$root/bin:$PATH expect 130 timeout 20 env LD_PRELOAD="$root/early.so" \
  fuseplan export 41115 --target cpu -b 1 -s 8 -q -o new --build
grep -q "interrupted in 'new'" said || fail "$(cat said)"
rm -r new

echo "no make"
alone=$(dirname "$(command -v fuseplan)")
for command in "ship --model bert --budget 2" "export 41115 --build"; do
  expect 1 env PATH="$alone" fuseplan $command --target cpu -b 1 -s 9 -q -o new
  grep -q "^fuseplan ${command%% *}: make, which builds libraries, is not on PATH; install it: apt install make$" said ||
    fail "$(cat said)"
done
unchanged "no make"
expect 1 env PATH="$alone" fuseplan doctor
grep -q '^missing  make ' out || fail "doctor: $(cat out)"
fuseplan doctor | grep -q '^ok  *make  */' || fail "doctor does not find make"

echo "wrong uses"
refused 2 'no model is given; add --model DIR' $ship -b 1 -s 8 -o new
refused 2 "'bert/config.json' names no weights, on which the library is verified; name a directory" \
  $ship --model bert/config.json -b 1 -s 8 -o new
refused 2 "cannot read the weights 'none': No such file" $ship --model bert --weights none -b 1 -s 8 -o new
refused 2 "the weights '.*bert/model.safetensors': " $ship --model bert -H 1 -b 1 -s 8 -o new
expect 2 $ship --model bert -b 1 -s 8 -o new --name 1st
refused 2 'a library has the scales of its model; add --calibration FILE' \
  $ship --model bert -b 1 -s 8 -o new --precision fp8
"$tests/cuda/scales.py" 0123456789abcdef 2 >scales
refused 2 "'scales': it is of weights 0123456789abcdef, and those of .* of another model" \
  $ship --model bert -b 1 -s 8 -o new --precision fp8 --calibration scales
refused 2 "'sm_90a' names no processors" \
  fuseplan ship --target cpu --budget 2 --model bert -b 1 -s 9 -o new --arch sm_90a
grep -q 'searching' said && fail "searched before it refused --arch"
expect 2 $ship --model bert -b 1 -s 8
mkdir others
touch others/mine
refused 2 "'others' holds what fuseplan did not write or what was changed since: 'mine'" \
  $ship --model bert -b 1 -s 8 -o others
expect 0 $ship --model bert -b 1 -s 8 -o others --force
{ [ -e others/mine ] && [ -e others/manifest.json ]; } || fail "--force kept no other file, or wrote no library"
# of a large model the index of its shards
mkdir shards
cp bert/config.json shards
cp bert/model.safetensors shards/model-00001-of-00001.safetensors
length=$(od -A n -t u8 -N 8 bert/model.safetensors | tr -d ' ')
tail -c +9 bert/model.safetensors | head -c "$length" |
  jq '{weight_map: (del(.__metadata__) | map_values("model-00001-of-00001.safetensors"))}' \
    >shards/model.safetensors.index.json
refused 2 "shards/model.safetensors.index.json' has 2 layers, and the workload has 3" \
  fuseplan bench 41115 --target cpu --model shards -L 3 -b 1 -s 8
expect 2 $ship --model bert --preset bert-tiny -b 1 -s 8 -o new
expect 2 $ship --model bert --layers 2 -b 1 -s 8 -o new
unchanged "wrong uses"

echo "in a table"
echo '--model bert -b 1,2 -s 8' >table
expect 0 fuseplan sweep plan table --target cpu --format csv
grep -q '^-b 1 -s 8 --model bert,[^,]*,[^,]*,[0-9]' out || fail "$(cat out)"

echo "norms before, weights elsewhere, another name, other processors"
mkdir vit
cp "$families/vit/config.json" vit
gzip -dc "$families/vit/model.safetensors.gz" >vit.safetensors
processors=native
[ "$(uname -m)" != x86_64 ] || processors=x86-64-v2
expect 0 $ship --model vit --weights vit.safetensors -b 1 -s 8 -o vit_library --name vit --arch $processors
grep -q -e "$processors" vit_library/Makefile || fail "the library is for other processors"
[ -e vit_library/libvit.so ] || fail "the library has another name"
echo "all well"
