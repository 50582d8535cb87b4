# The best plan first, whatever the search said; then the others, like with like.
known_db k.db
export FUSEPLAN_DB=k.db
fuseplan query --target cpu -b 1 -s 128 -m causal -q --top 3 | tail -n 5
fuseplan query --target cpu -b 1 -s 128 -m causal -q --top 9 --format csv
fuseplan query --target cpu -b 2 -s 64 -m strided:t=8 -H 8 -q --top 2 --format ndjson | grep -o '"top":.*'
fuseplan query --target cpu -b 1 -s 128 -m causal --top 0; echo $?
