#!/bin/sh
# peers.sh SOURCE_DIR: what tests/cuda/peers.py says where it cannot work.
set -u
script=$1/tests/cuda/peers.py
export PYTHONDONTWRITEBYTECODE=1
command -v python3 >/dev/null || {
  echo "skipped: there is no python3"
  exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/empty" # shadows a PyTorch that is installed
echo 'raise ImportError' >"$dir/empty/torch.py"

# says EXIT PATTERN ARGUMENT...
says() {
  want=$1 pattern=$2
  shift 2
  PYTHONPATH="$dir/empty" python3 "$script" "$@" >"$dir/out" 2>&1
  got=$?
  if [ $got -ne "$want" ] || ! grep -q -e "$pattern" "$dir/out"; then
    echo "FAILED: $*: exit $got, expected $want and '$pattern'"
    cat "$dir/out"
    exit 1
  fi
}

says 1 '^peers: there is no PyTorch; install it for the python3 on PATH$' -o "$dir/peers.csv" 1x128
says 2 "'1,128' is no BATCHxSEQ_LEN, as in 8x512" -o "$dir/peers.csv" 1,128
says 2 "'eager' is no variant of --op attention" --op attention --variants eager -o "$dir/peers.csv" 1x128
[ ! -e "$dir/peers.csv" ] || {
  echo "FAILED: a file was written"
  exit 1
}

cd "$1/tests/cuda" || exit 1
# the second variant is the fastest one; its times and fuseplan's are of the same rounds
ratio=$(python3 -c "import peers
rounds = [1.0, 2.0] * 50
print(peers.compare({'fuseplan': rounds, 'eager': [9.0] * 100, 'flex': [1.5 * t for t in rounds]}),
      peers.compare({'fuseplan': [1.0] * 100, 'flex': [2.0 + i / 100 for i in range(100)]}),
      peers.compare({'flex': rounds}), sep=', ')")
[ "$ratio" = "1.50, 2.50 (2.40 to 2.60), -" ] || {
  echo "FAILED: the ratios are $ratio"
  exit 1
}

# a program that fails without a word, and exceptions without one, cost their own line alone
cat >"$dir/silent" <<'END'
#!/bin/sh
[ "$1" != export ] || exit 0
exit 3
END
cat >"$dir/make" <<'END'
#!/bin/sh
exit 4
END
chmod +x "$dir/silent" "$dir/make"
PATH="$dir:$PATH" python3 - "$dir" >"$dir/out" 2>&1 <<'END' || { echo "FAILED: $(cat "$dir/out")"; exit 1; }
import argparse, contextlib, sys
import peers
a = argparse.Namespace(fuseplan=f'{sys.argv[1]}/silent', layers=1, avg_seq_len=None, rounds=1)
print(peers.run_fuseplan(a, 'bench'), peers.export_plan(a, sys.argv[1], 'plan', []))

def fails():
    assert False

peers.make_variants = lambda *_: ({'eager': fails, 'flex': lambda: None}, 1)
peers.capture = lambda torch, run: (run(), None)
peers.time_graphs = lambda torch, graphs, rounds: {name: [1.0] for name in graphs}
print(peers.time_variants(a, None, None, 1, 16, 'full', None))
END
printf '%s\n' 'peers: fuseplan bench: exit status 3' 'peers: plan: exit status 4' 'None None' \
  'peers: eager 1x16 full: AssertionError()' "({'flex': [1000.0]}, True)" | sort >"$dir/expected"
sort "$dir/out" | cmp -s - "$dir/expected" || {
  echo "FAILED: failures without a word: $(cat "$dir/out")"
  exit 1
}

masks=$(python3 -c "import peers; print(peers.split_masks('full,bigbird:g=2,n=1,sliding:w=4,causal'))")
[ "$masks" = "['full', 'bigbird:g=2,n=1', 'sliding:w=4', 'causal']" ] || {
  echo "FAILED: the list of masks is cut as $masks"
  exit 1
}
