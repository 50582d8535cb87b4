#!/bin/sh
# huggingface.sh FUSEPLAN: the Python file of exported libraries for the CPU, with PyTorch and transformers.
# shellcheck disable=SC2086 # variables that are not quoted are words
set -eu
PATH=$(cd "$(dirname "$1")" && pwd):$PATH
here=$(cd "$(dirname "$0")" && pwd)
python3 -c 'import torch, transformers' 2>/dev/null || {
  echo "skipped: python3 has no torch and transformers"
  exit 77
}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cd "$root"
export PATH FUSEPLAN_DB="$root/none.db" PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 OMP_WAIT_POLICY=passive CFLAGS='-O1 -march=native -fopenmp'

small='--target cpu -H 2 -W 16 --ffn 64 -L 3 --eps 1e-12 -q --build'
fuseplan export 41115 $small -b 2,4 -s 8,16 -o small
fuseplan export 41115 $small -b 2 -s 8 -m causal -o causal
fuseplan export 43690 $small -b 2 -s 8 -H 1 -o other
python3 "$here/huggingface.py" small other causal line
sh -c "$(cat line) -q"
python3 "$here/huggingface.py" --long encoder_21
