# No line of a table has more than 100 columns; wide cells take several lines.
known_db k.db
export FUSEPLAN_DB=k.db
fuseplan query --target cpu -b 1 -s 128 -m causal -q >report
sed -n '4,$p' report | sed 's/, 20[0-9-]* [0-9:]* UTC/, DATE/'
awk 'length > 100 && !/^workload/' report
fuseplan query --target cpu -b 1 -s 128 -m causal -q --format csv | sed 's/,20[0-9T:.-]*Z/,DATE/g'
sqlite3 k.db "DELETE FROM trial WHERE kind = 'final'; VACUUM"
fuseplan query --target cpu -b 1 -s 128 -m causal -q >report
awk '/^time/ || length > 100 && !/^workload/' report
