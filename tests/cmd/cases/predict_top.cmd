for i in 0 1 2 3 4 5 6 7; do
  printf '100010100%s%s%s0101   %s.5\n' $((i % 2)) $((i / 2 % 2)) $((i / 4)) $((10 + i % 2 * 20))
done >times.txt
fuseplan train --data times.txt --db m.db -q --format csv >trained
# Two names of one plan count once.
fuseplan predict 1000101001000101 1000101000000101 35397 2629 --db m.db --top 1 | cut -d ' ' -f 1,3
fuseplan predict all --db m.db --top 4 --format csv | wc -l
