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
masks=$(python3 -c "import peers; print(peers.split_masks('full,bigbird:g=2,n=1,sliding:w=4,causal'))")
[ "$masks" = "['full', 'bigbird:g=2,n=1', 'sliding:w=4', 'causal']" ] || {
  echo "FAILED: the list of masks is cut as $masks"
  exit 1
}
