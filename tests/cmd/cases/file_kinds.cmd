# Files that another command takes are named; a byte order mark does not count.
mark='\357\273\277' line='{"format":"fuseplan results","version":1}'
printf "$mark$line\n" >results
printf '\037\213packed' >packed
printf "\377\376$line" >wide
printf "${mark}1000000000000000 1.5\n" >times
fuseplan db import results --db a.db
for file in a.db packed wide; do fuseplan db import $file --db b.db; done
for file in results packed; do fuseplan db merge $file --db b.db; done
for file in times wide; do fuseplan train --data $file --db b.db; done
ls
