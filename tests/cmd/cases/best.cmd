# 'best' is the best plan known, wherever a workload is given.
known_db k.db
export FUSEPLAN_DB=k.db
fuseplan generate best --target cpu -b 1 -s 128 -m causal -o plan 2>&1 | head -n 1
grep -o '"value": [0-9]*' plan/manifest.json
fuseplan predict best --target cpu -b 1 -s 128 -m causal 2>said; echo $?; head -n 1 said
