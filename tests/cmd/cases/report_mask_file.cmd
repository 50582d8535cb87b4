# A page of a mask from a file: its commands name the file, quoted, or its hash if no option did.
known_db k.db
export FUSEPLAN_DB=k.db
fuseplan mask causal -s 128 --npy "my mask.npy" >/dev/null
hash=$(fuseplan query --target cpu -b 1 -s 128 -m "file:my mask.npy" 2>&1 | grep -o "mask=file:[0-9a-f]*")
sqlite3 k.db "UPDATE workload SET text = replace(text, 'mask=causal', '$hash'), mask = substr('$hash', 6) WHERE seq_len = 128;
  DELETE FROM trial WHERE study IN (SELECT study.id FROM study JOIN workload ON workload.id = workload WHERE seq_len = 64); VACUUM"
fuseplan report -o last.html 2>&1 | sed 's/file:[0-9a-f]*/file:HASH/'
fuseplan report --target cpu -b 1 -s 128 -m "file:my mask.npy" -o named.html
