#!/bin/sh
# peers.sh SOURCE_DIR: what bench/peers.py says where it cannot work.
set -u
script=$1/bench/peers.py
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

cd "$1/bench" || exit 1
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

masks=$(python3 -c "import peers; print(peers.split_masks('full,bigbird:g=2,n=1,sliding:w=4,causal'))")
[ "$masks" = "['full', 'bigbird:g=2,n=1', 'sliding:w=4', 'causal']" ] || {
  echo "FAILED: the list of masks is cut as $masks"
  exit 1
}
