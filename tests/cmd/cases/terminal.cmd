# On a terminal translate and predict print tables with titles; in a pipe they print plain lines.
for i in 0 1 2 3 4 5 6 7; do
  printf '100010100%s%s%s0101   %s.5\n' $((i % 2)) $((i / 2 % 2)) $((i / 4)) $((10 + i % 2 * 20))
done >times.txt
fuseplan train --data times.txt --db m.db -q --format csv >trained
terminal() { script -qec "$*" /dev/null </dev/null | tr -d '\r'; }
terminal fuseplan translate 6826 41115
fuseplan translate 6826 41115
terminal fuseplan predict 35397 --db m.db | sed 's/  *[0-9.]*  yes.*/ MS yes P/; s/  *[0-9.]*  no.*/ MS no P/'
fuseplan predict 35397 --db m.db --format json | grep -o '"high_performance": [a-z]*'
