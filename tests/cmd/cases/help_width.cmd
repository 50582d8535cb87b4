# No line of help has more than 100 columns.
fuseplan help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' >commands
while read -r command; do
  fuseplan "$command" --help | awk -v command="$command" 'length > 100 { print command ": " $0 }'
done <commands
[ "$(wc -l <commands)" -ge 11 ] && echo "none is wider"
