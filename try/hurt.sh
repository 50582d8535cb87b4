B=/work/wt/data/build/release/bin
i=0
while IFS= read -r sql; do
  rm -f h.db*; $B/known_db h.db >/dev/null
  sqlite3 h.db "PRAGMA foreign_keys=OFF; PRAGMA ignore_check_constraints=ON; PRAGMA writable_schema=OFF; $sql; VACUUM" 2>err || { echo "SQL: $sql: $(cat err)"; continue; }
  for c in "db list" "db info" "query -b 1 -s 128 -m causal --target cpu" "query -b 1 -s 128 -m causal --target cpu --top 5" "explain best -b 1 -s 128 -m causal --target cpu" "db export" "db export-space -b 1 -s 128 -m causal --target cpu -o s.gz --force" "db merge h.db --db m$i.db" "train -b 1 -s 128 -m causal --target cpu" "predict all -b 1 -s 128 -m causal --target cpu --top 3" "generate 41115 -b 1 -s 128 -m causal --target cpu -o gen --force" "compare h.db h.db" "report -o r.html --force" "best -b 1 -s 128 -m causal --target cpu" "db check"; do
    case $c in db\ merge*) d=;; compare*) d=;; *) d="--db h.db";; esac
    timeout 20 $B/fuseplan $c $d -q >o 2>e; r=$?
    if [ $r -ge 124 ] || { [ "$c" = "db check" ] && [ $r = 0 ]; }; then echo "$r [$sql] $c: $(head -c 200 e)"; fi
  done
  i=$((i+1)); rm -rf m*.db* gen s.gz r.html
done
