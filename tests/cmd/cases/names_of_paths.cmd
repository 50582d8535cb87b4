# A name may have blanks, begin with a dash or mean something to a shell: what is printed can be
# copied, and no compiler takes the name for an option.
for dir in 'a b;c' -dash; do
  fuseplan generate 41115 -b 1 -s 8 -H 1 -W 4 -L 1 --target cpu -o "$dir" 2>&1 | tail -n 1
done
FUSEPLAN_CACHE=-cache fuseplan search -b 1 -s 8 -H 1 -W 4 -L 1 --target cpu --time-limit 0.1 -q >found
echo "exit $?"
ls -- ./-cache | head -n 1
