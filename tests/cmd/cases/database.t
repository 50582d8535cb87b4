=== db forget
## What is forgotten; a dry run changes nothing.
$ cp "$CASES/results.ndjson" old.txt
$ sed 's/"protocol":"2"/"protocol":"1"/;s/1234567890abcdef/fedcba0987654321/' old.txt | cat old.txt - >both.txt
$ fuseplan db import both.txt --db a.db -q
from      results  added  known  conflicts  replaced
both.txt        4      4      0          0         0
$ w='-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1 --target cpu'
2$ fuseplan db forget --db a.db
! fuseplan db: 'db forget' needs to know what: a workload (-b N -s N ...), --failed or --older-protocol
3$ fuseplan db forget $w --db none.db
! fuseplan db: there is no database at 'none.db' yet: 'fuseplan search' makes one
$ fuseplan db forget $w -L 2 --db a.db
! fuseplan: nothing that is stored agrees with these options; 'fuseplan db list' prints what there is
$ fuseplan db forget --failed --target cpu --db a.db
! fuseplan: nothing that is stored agrees with these options; 'fuseplan db list' prints what there is
$ fuseplan db forget $w --dry-run --db a.db
workload                                 protocol  forgotten  measured                  device
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1  1                 2  2026-01-01T00:00:01.000Z  a processor
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1  2                 2  2026-01-01T00:00:01.000Z  a processor
! fuseplan: nothing was forgotten: --dry-run
$ fuseplan db list --db a.db --format csv | cut -d, -f1,2,8,12
options,value,trials,protocol
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1,41115,2,1
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1,41115,2,2
$ fuseplan db forget $w --older-protocol --db a.db --format json
[
 {"options": "-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1", "target": "cpu", "device": "a processor", "protocol": "1", "trials": 2, "stored_utc": "2026-01-01T00:00:01.000Z"},
 {"options": "-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1", "target": "cpu", "device": "a processor", "protocol": "2", "trials": 2, "stored_utc": "2026-01-01T00:00:01.000Z"}
]
$ fuseplan db export --db a.db | wc -l
1
## Each option counts by itself: --target and --init without a workload too, and --older-protocol without the device.
$ sed '/"value":43690/{
>   s/"status":"ok"/"status":"failed","reason_code":"compile","reason":"no"/
>   s/"median_ms":4,"ci_low_ms":3.5,"ci_high_ms":4.5,"sample_count":6/"sample_count":0/
> }' old.txt >failed.txt
$ sed 's/"kind":"cpu"/"kind":"cuda"/;s/1234567890abcdef/1234567890abcde0/' failed.txt >cuda.txt
$ sed 's/"init":"uniform"/"init":"wide"/;s/1234567890abcdef/1234567890abcde1/' failed.txt >wide.txt
$ fuseplan db import failed.txt cuda.txt wide.txt --db c.db -q
from        results  added  known  conflicts  replaced
failed.txt        2      2      0          0         0
cuda.txt          2      2      0          0         0
wide.txt          2      2      0          0         0
$ for what in '--failed --target cuda' '--failed --target cpu' '--failed --init wide' "$w --init uniform" \
>   '--older-protocol --target cuda' '--older-protocol --init wide --target cpu'; do
>   echo "$what:"
>   fuseplan db forget $what --dry-run --db c.db --format csv -q
> done
--failed --target cuda:
options,target,protocol,trials,stored_utc,device
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1 -t fp32 --target cuda,cuda,2,1,2026-01-01T00:00:01.000Z,a processor
--failed --target cpu:
options,target,protocol,trials,stored_utc,device
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1 --init wide,cpu,2,1,2026-01-01T00:00:01.000Z,a processor
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1,cpu,2,1,2026-01-01T00:00:01.000Z,a processor
--failed --init wide:
options,target,protocol,trials,stored_utc,device
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1 --init wide,cpu,2,1,2026-01-01T00:00:01.000Z,a processor
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1 --target cpu --init uniform:
options,target,protocol,trials,stored_utc,device
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1,cpu,2,2,2026-01-01T00:00:01.000Z,a processor
--older-protocol --target cuda:
options,target,protocol,trials,stored_utc,device
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1 -t fp32 --target cuda,cuda,2,2,2026-01-01T00:00:01.000Z,a processor
--older-protocol --init wide --target cpu:
options,target,protocol,trials,stored_utc,device
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1 --init wide,cpu,2,2,2026-01-01T00:00:01.000Z,a processor
2$ fuseplan db forget --target cuda --init wide --db c.db
! fuseplan db: 'db forget' needs to know what: a workload (-b N -s N ...), --failed or --older-protocol
## Of inputs drawn by another seed.
$ sed 's/"seed":0/"seed":7/;s/1234567890abcdef/1234567890abcde2/' old.txt >seed.txt
$ fuseplan db import old.txt seed.txt --db s.db -q
from      results  added  known  conflicts  replaced
old.txt         2      2      0          0         0
seed.txt        2      2      0          0         0
$ fuseplan db forget $w --seed 7 --db s.db --format csv -q
options,target,protocol,trials,stored_utc,device
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1,cpu,2,2,2026-01-01T00:00:01.000Z,a processor
$ fuseplan db export --db s.db | grep -o '"seed":.'
"seed":0
2$ fuseplan db forget --seed 7 --db s.db
! fuseplan db: 'db forget' needs to know what: a workload (-b N -s N ...), --failed or --older-protocol
=== db move
## Results move as text and between databases; the later of two stays, in any order.
$ cp "$CASES/results.ndjson" old.txt
$ sed '/"value":41115/s/"stored_utc":"2026-01-01/"stored_utc":"2026-02-01/;s/"median_ms":2,"ci_low_ms":1.75,"ci_high_ms":2.25/"median_ms":3,"ci_low_ms":2.5,"ci_high_ms":3.5/' old.txt >new.txt
$ fuseplan db import old.txt --db old.db
from     results  added  known  conflicts  replaced
old.txt        2      2      0          0         0
$ fuseplan db import - --db new.db <new.txt
from  results  added  known  conflicts  replaced
-           2      2      0          0         0
$ fuseplan db merge old.db new.db --db a.db
from    results  added  known  conflicts  replaced
old.db        2      2      0          0         0
new.db        2      0      1          1         1
$ fuseplan db merge new.db old.db --db b.db
from    results  added  known  conflicts  replaced
new.db        2      2      0          0         0
old.db        2      0      1          1         0
$ fuseplan db export --db a.db -o a.txt
$ fuseplan db export --db b.db | diff a.txt - && echo same
same
$ fuseplan db import a.txt --db a.db --format csv
path,results,added,same,conflicts,replaced
a.txt,2,0,2,0,0
$ fuseplan db list --db a.db
workload                                 best plan     ms  trials  measured    device
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1      41115  3.000       2  2026-02-01  a processor
$ fuseplan db check --db a.db
'a.db' is whole
## The database that is read is not written over.
2$ fuseplan db export --db a.db -o a.db
! fuseplan db: --output: 'a.db' is a file that the command reads; name another one
2$ fuseplan train --data old.txt --db a.db --events old.txt
! fuseplan train: --events: 'old.txt' is a file that the command reads; name another one
2$ fuseplan search --target cpu -b 1 -s 8 --db a.db --error 0.1 --accuracy old.txt --events old.txt
! fuseplan search: --events: 'old.txt' is a file that the command reads; name another one
$ fuseplan db check --db a.db
'a.db' is whole
## A mistyped name is an error of the command line.
2$ fuseplan db merge none.db --db a.db
! fuseplan db: there is no database at 'none.db'
## A page goes to standard output, too.
$ fuseplan report --db a.db -o - | grep -c '</html>'
1
! fuseplan: wrote '-': the plans measured for -b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1 --target cpu
=== db move bad
## Nothing is made of what cannot be read; errors name the line.
$ echo text >bad.txt
2$ fuseplan db import bad.txt --db a.db
! fuseplan db: 'bad.txt', line 1, column 4: '[' or '{' expected near 'text'
2$ fuseplan db import
! fuseplan db: 'db import' needs FILE...
1$ fuseplan db import none.txt --db a.db
! fuseplan db: cannot read 'none.txt': No such file or directory
2$ fuseplan db export now --db a.db
! fuseplan db: 'db export' takes no operand; found 'now'
$ printf '%s\n%s\n' '{"format":"fuseplan results","version":1}' '{"study":"x","trial":"plan"}' >bad.txt
2$ fuseplan db import bad.txt --db a.db
! fuseplan db: 'bad.txt', line 2: no line before this one says what the study 'x' is
2$ fuseplan db import bad.txt -o out --db a.db
! fuseplan db: 'db import' takes no option '--output'
$ ls
a.db
bad.txt
=== actions
2$ fuseplan db
! fuseplan db: no operand given; expected ACTION [FILE...], for example: fuseplan db list
2$ fuseplan db infos
! fuseplan db: unknown action 'infos'; did you mean 'info'? expected list, info, check, forget, merge, export or import
=== database bad
$ echo 'this is no database, whatever it may be called' >text.db
1$ fuseplan db info --db text.db
! fuseplan db: database 'text.db' is not a fuseplan database: name another file with --db or FUSEPLAN_DB (file is not a database)
1$ fuseplan db info --db .
! fuseplan db: database '.' is a directory: give the path of a file
1$ fuseplan db info --db text.db/x.db
! fuseplan db: database 'text.db/x.db' cannot be opened: Not a directory: check the path and the permissions of its directories, or name another file with --db or FUSEPLAN_DB
=== database damaged
## A database that another program filled with values that no fuseplan stores, and one with flipped bits.
$ known_db k.db
$ sqlite3 k.db "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;
>   UPDATE trial SET plan = 9999999 WHERE id = (SELECT max(id) FROM trial WHERE kind = 'final'); VACUUM"
1$ fuseplan db merge k.db --db m.db
! fuseplan db: database 'k.db' holds what no fuseplan stores: table 'trial', trial 3: 'plan' is '9999999', expected 0 to 65535: 'fuseplan db check' names all such rows: remove them with sqlite3, or move the file away to start afresh
$ sqlite3 k.db "UPDATE workload SET layers = 4000000000 WHERE batch = 2; UPDATE trial SET sample_count = -7 WHERE id = 1; VACUUM"
$ fuseplan db list --db k.db >listed; code=$?
! fuseplan db: database 'k.db' holds what no fuseplan stores: table 'workload', study 2: 'layers' is '4000000000', expected 1 to 1024: 'fuseplan db check' names all such rows: remove them with sqlite3, or move the file away to start afresh
$ sed 's/2[0-9]*-[0-9]*-[0-9]*/on its day/' listed; echo $code
workload               best plan       ms  trials  measured    device
-b 1 -s 128 -m causal      41115  108.000     128  on its day  a processor
1
1$ fuseplan db check --db k.db
problem
trial row 3 refers to a row of plan that is missing
trial 1 has 8 samples stored, -7 expected
table 'workload', workload 2: 'layers' is '4000000000', expected 1 to 1024
table 'trial', trial 1: 'sample_count' is '-7', expected 0 to 16777216
table 'trial', trial 3: 'plan' is '9999999', expected 0 to 65535
$ known_db f.db
$ printf '\377\377' | dd of=f.db bs=1 seek=20490 conv=notrunc 2>/dev/null
1$ fuseplan db check --db f.db
problem
file structure: *** in database main *** Page 6: unable to get the page. error code=8202
database 'f.db' is damaged: move it away to start afresh; 'sqlite3 FILE .dump' saves what can be
read; if another program wrote to it, 'sqlite3 FILE VACUUM' renews the checksums (page 6 does not
match its checksum)
1$ fuseplan db list --db f.db
! fuseplan db: database 'f.db' is damaged: move it away to start afresh; 'sqlite3 FILE .dump' saves what can be read; if another program wrote to it, 'sqlite3 FILE VACUUM' renews the checksums (page 6 does not match its checksum)
=== file kinds
## Files that another command takes are named; a byte order mark does not count.
$ mark='\357\273\277' line='{"format":"fuseplan results","version":1}'
$ printf "$mark$line\n" >results
$ printf '\037\213packed' >packed
$ printf "\377\376$line" >wide
$ printf "${mark}1000000000000000 1.5\n" >times
$ fuseplan db import results --db a.db
from     results  added  known  conflicts  replaced
results        0      0      0          0         0
2$ for file in a.db packed wide; do fuseplan db import $file --db b.db; done
! fuseplan db: 'a.db' holds no results as text: it is a database: 'fuseplan db merge' adds what one holds
! fuseplan db: 'packed' holds no results as text: it is packed by gzip: 'gzip -dc' unpacks it
! fuseplan db: 'wide' holds no results as text: it is text in UTF-16: convert it, as by 'iconv -f UTF-16 -t UTF-8'
1$ for file in results packed; do fuseplan db merge $file --db b.db; done
! fuseplan db: database 'results' is not a fuseplan database: name another file with --db or FUSEPLAN_DB (file is not a database); it holds results as text: 'fuseplan db import' adds them
! fuseplan db: database 'packed' is not a fuseplan database: name another file with --db or FUSEPLAN_DB (file is not a database); it is packed by gzip: 'gzip -dc' unpacks it
2$ for file in times wide; do fuseplan train --data $file --db b.db; done
! fuseplan train: 1 distinct plans are too few to learn from; give measured times of 2 or more
! fuseplan train: 'wide': it is text in UTF-16: convert it, as by 'iconv -f UTF-16 -t UTF-8'
$ ls
a.db
b.db
packed
results
times
wide
=== read pipe
## Files that are no files: each command would wait for somebody who writes, or read for ever.
$ mkfifo pipe
$ for command in 'mask file:pipe -s 8' 'train --data pipe --name x' \
>   'db import /dev/zero' 'train --data /dev/zero --name x' 'mask file:/dev/zero -s 8'; do
>   timeout 60 fuseplan $command
>   echo "exit $?"
> done
exit 1
exit 1
exit 1
exit 1
exit 1
! fuseplan mask: cannot read 'pipe': it is a pipe, and must be a regular file
! fuseplan train: cannot read 'pipe': it is a pipe, and must be a regular file
! fuseplan db: cannot read '/dev/zero': it is a device, and must be a regular file or a pipe
! fuseplan train: cannot read '/dev/zero': it is a device, and must be a regular file
! fuseplan mask: cannot read '/dev/zero': it is a device, and must be a regular file
