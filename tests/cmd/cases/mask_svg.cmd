fuseplan mask causal -s 2 --svg m.svg >/dev/null && cat m.svg
