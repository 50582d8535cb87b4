#!/bin/sh
# arrays.sh FUSEPLAN SOURCE: runs the code of docs/ship-a-plan.md that needs NumPy, on small layers.
set -eu
PATH=$(cd "$(dirname "$1")" && pwd):$PATH
python=$("$2/tests/cmd/find_numpy.sh") || {
  echo "skipped: no python3 has numpy, which Debian's python3-numpy installs"
  exit 77
}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
export PATH FUSEPLAN_DB="$root/none.db" CFLAGS='-O1 -march=native -fopenmp'
# The section's command and code, of sizes that take less time.
sed -n '/^## .* From NumPy$/,/^## .* Where /s/^    //p' "$2/docs/ship-a-plan.md" >"$root/page"
sed -n 's/^\$ \(.*\)$/\1 -H 2 -W 8 --ffn 40 -L 3 --eps 1e-12 -q/p' "$root/page" >"$root/export.sh"
grep -v '^\$' "$root/page" >"$root/code.py"
cd "$root"
[ "$(wc -l <export.sh)" -eq 1 ] || { echo "FAILED: one command was expected:" && cat page && exit 1; }
sh -e ./export.sh
"$python" -B "$2/tests/docs/arrays.py" code.py
