# Nothing is made of what cannot be read; errors name line and column.
echo text >bad.txt
fuseplan db import bad.txt --db a.db; echo $?
fuseplan db import; echo $?
fuseplan db import none.txt --db a.db; echo $?
fuseplan db merge none.db --db a.db; echo $?
fuseplan db export now --db a.db; echo $?
fuseplan db list extra; echo $?
printf '%s\n%s\n' '{"format":"fuseplan results","version":1}' '{"study":"x","trial":"plan"}' >bad.txt
fuseplan db import bad.txt --db a.db; echo $?
fuseplan db import bad.txt -o out --db a.db; echo $?
ls
