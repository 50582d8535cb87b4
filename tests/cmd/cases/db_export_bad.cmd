fuseplan db export-space; echo $?
fuseplan db export-space -b 1 -s 4; echo $?
fuseplan db export-space -b 1 -s 4 -o a.space.gz --db none.db; echo $?
fuseplan db info --batch 1; echo $?
fuseplan db export-spaces; echo $?
