# A stored model that another program changed: one is trained in its place.
known_db k.db
export FUSEPLAN_DB=k.db
w="--target cpu -b 1 -s 128 -m causal"
# words of $w are options
# shellcheck disable=SC2086
{
  fuseplan train $w -q >/dev/null
  fuseplan predict 41115 $w >before
  sqlite3 k.db "UPDATE model SET bytes = CAST(substr(bytes, 1, 300) || x'99' || substr(bytes, 302) AS BLOB); VACUUM"
  fuseplan predict 41115 $w >after
  cmp before after
  fuseplan report $w -o r.html
  fuseplan train $w -q >/dev/null
  fuseplan predict 41115 $w >after
  cmp before after
}
