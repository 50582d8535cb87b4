# Two plans told apart by one bit: the model must find it.
for i in 0 1 2 3 4 5 6 7; do
  printf '100010100%s%s%s0101   %s.5\n' $((i % 2)) $((i / 2 % 2)) $((i / 4)) $((10 + i % 2 * 20))
done >times.txt
fuseplan train --data times.txt --db m.db -q --format csv | cut -d, -f1-3
fuseplan db check --db m.db
fuseplan predict 1000101001000101 1000101000000101 --db m.db | cut -c 1,7-
fuseplan predict 1000101001000101 --db m.db --name other; echo $?
