# What a compiler or another program put into a database reaches no terminal as it is.
known_db k.db
export FUSEPLAN_DB=k.db
sqlite3 k.db "UPDATE trial SET status = 'failed', reason_code = 'compile', median_ms = NULL,
  ci_low_ms = NULL, ci_high_ms = NULL, reason = CAST(x'1b5d303b6f776e6564079b0a' AS TEXT)
  WHERE plan = 43690; VACUUM"
fuseplan query --target cpu -b 1 -s 128 -m causal 2>&1 | grep -o 'baseline 43690 has no time: [^(]*'
# Nor do characters that reverse, hide or break text.
sqlite3 k.db "UPDATE trial SET reason = 'a' || char(8238, 8203, 8232, 917569) || 'b' WHERE plan = 43690; VACUUM"
fuseplan query --target cpu -b 1 -s 128 -m causal 2>&1 | grep -o 'baseline 43690 has no time: [^(]*'
cp k.db "$(printf 'm\342\200\256.db')"
fuseplan db info --db m*.db | head -n 1
fuseplan db info --db m*.db --format json | grep path
fuseplan db check --db m*.db
fuseplan report -o page.html --target cpu -b 1 -s 128 -m causal 2>/dev/null
grep -c "$(printf '\342\200\256')" page.html; grep -c 'a\\\\xe2\\\\x80\\\\xae' page.html
