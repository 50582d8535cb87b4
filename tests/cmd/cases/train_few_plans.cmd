# 12 lines, but three plans: too few to hold some out
export FUSEPLAN_DB=models.db
i=0
while [ $i -lt 4 ]; do
  printf '%s 1%d\n' 1000101001000101 $i 1000101000000101 $i 1000101000000001 $i
  i=$((i + 1))
done >times.txt
fuseplan train --data times.txt; echo $?
fuseplan train --data times.txt --format json; echo $?
