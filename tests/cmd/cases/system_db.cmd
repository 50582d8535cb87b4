# What takes its plan from the system's database takes schedules and times from there too.
known_db k.db
w='--target cpu -b 1 -s 128 -m causal'
fuseplan generate 41115 $w -q -o own --db k.db
fuseplan explain 41115 $w --db k.db >own.txt
export FUSEPLAN_SYSTEM_DB=k.db
fuseplan generate best $w -o plan --db none.db; echo $?
diff -r own plan && echo "the same plan"
fuseplan explain 41115 $w --db none.db | diff own.txt - && echo "the same picture"
fuseplan explain best $w -q --db none.db | diff own.txt - && echo "of the best one too"
# A study in which no plan ran has no answer.
fuseplan db export --db k.db | grep -e '"format"' -e '"inputs".*"causal"' >study.txt
fuseplan db import study.txt -q --db u.db >out
fuseplan generate best $w -q -o plan --db u.db; echo $?
diff -r own plan && echo "the same plan"
# The user's own comes first.
FUSEPLAN_SYSTEM_DB=u.db fuseplan explain 41115 $w --db k.db | diff own.txt - && echo "the same picture"
