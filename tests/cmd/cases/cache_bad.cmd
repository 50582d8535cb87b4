FUSEPLAN_CACHE=/proc/none fuseplan bench 41115 -b 1 -s 4 -H 1 -W 4 -L 1 --db d.db --target cpu
echo $?
ls
