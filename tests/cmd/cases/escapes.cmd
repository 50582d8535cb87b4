# What a compiler or another program put into a database reaches no terminal as it is.
known_db k.db
export FUSEPLAN_DB=k.db
sqlite3 k.db "UPDATE trial SET status = 'failed', reason_code = 'compile', median_ms = NULL,
  ci_low_ms = NULL, ci_high_ms = NULL, reason = CAST(x'1b5d303b6f776e6564079b0a' AS TEXT)
  WHERE plan = 43690; VACUUM"
fuseplan query --target cpu -b 1 -s 128 -m causal 2>&1 | grep -o 'baseline 43690 has no time: [^(]*'
