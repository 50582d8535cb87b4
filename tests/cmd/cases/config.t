=== config list
## All settings, what they are and what says so.  The directory's file wins over the user's, which holds everywhere.
$ mkdir -p ../home/.config/fuseplan
$ cat >../home/.config/fuseplan/fuseplan.conf <<END
> # of all directories
> [fuseplan]
>     target = cpu
>     db = ~/all.db
>     cache = "/var/my cache"
>     batch = 2
> END
$ cat >fuseplan.conf <<END
> [fuseplan]
>     preset = modernbert-base
>     batch = 8   ; a comment
>     seq-len = 128,256
>     gate
> END
$ fuseplan config list | grep -v -e '^db' -e '^cache' | sed "s:$HOME:~:; s/  *$//"
setting       value                            from
batch         8                                fuseplan.conf:3
seq-len       128,256                          fuseplan.conf:4
mask          full                             preset modernbert-base
preset        modernbert-base                  fuseplan.conf:2
model         -                                not set
heads         12                               preset modernbert-base
head-size     64                               preset modernbert-base
hidden        768                              preset modernbert-base
layers        22                               preset modernbert-base
ffn           1152                             preset modernbert-base
eps           1e-05                            preset modernbert-base
norm          pre                              preset modernbert-base
norm-kind     layer                            preset modernbert-base
activation    gelu                             preset modernbert-base
gate          true                             fuseplan.conf:5
rope          160000                           preset modernbert-base
score-bias    none                             preset modernbert-base
local-mask    sliding:w=64                     preset modernbert-base
local-rope    10000                            preset modernbert-base
global-every  3                                preset modernbert-base
dtype         fp32                             built-in
lengths       -                                not set
avg-seq-len   -                                not set
target        cpu                              ~/.config/fuseplan/fuseplan.conf:3
init          uniform                          built-in
seed          0                                built-in
$ fuseplan config list --format csv | sed -n "s:$HOME:~:g; /^db/,\$p"
db,~/all.db,~/.config/fuseplan/fuseplan.conf:4,~/.config/fuseplan/fuseplan.conf,4
cache,/var/my cache,~/.config/fuseplan/fuseplan.conf:5,~/.config/fuseplan/fuseplan.conf,5
$ fuseplan config list --format csv | grep batch
batch,8,fuseplan.conf:3,fuseplan.conf,3
## The options of a command show what it would take.
$ fuseplan config list --preset bert-tiny -b 4 --db here.db --format csv | grep -E '^(batch|preset|heads|seq-len|gate|db),'
batch,4,--batch,,
seq-len,"128,256",fuseplan.conf:4,fuseplan.conf,4
preset,bert-tiny,--preset,,
heads,2,preset bert-tiny,,
gate,none,preset bert-tiny,,
db,here.db,--db,,
## A variable wins over files, an option over both.
$ FUSEPLAN_DB=b.db fuseplan config list --format json | grep '"db"'
 {"setting": "db", "value": "b.db", "from": "FUSEPLAN_DB", "file": null, "line": null},
$ FUSEPLAN_DB=b.db fuseplan config list --db c.db --format json | grep '"db"'
 {"setting": "db", "value": "c.db", "from": "--db", "file": null, "line": null},
$ FUSEPLAN_CACHE=c fuseplan config list --format csv | grep '^cache'
cache,c,FUSEPLAN_CACHE,,
## An empty variable is none.
$ FUSEPLAN_DB= fuseplan config list --format csv | grep '^db' | sed "s:$HOME:~:g"
db,~/all.db,~/.config/fuseplan/fuseplan.conf:4,~/.config/fuseplan/fuseplan.conf,4
## $XDG_CONFIG_HOME
$ mkdir -p x/fuseplan; printf '[fuseplan]\nheads = 3' >x/fuseplan/fuseplan.conf
$ rm fuseplan.conf
$ XDG_CONFIG_HOME=$PWD/x fuseplan config list --format csv | sed "s:$PWD:.:g" | grep -e heads -e target
heads,3,./x/fuseplan/fuseplan.conf:2,./x/fuseplan/fuseplan.conf,2
target,cpu,built-in,,
$ rm -r ../home/.config
=== settings in a command
## The workload of the file; a printed command has all of it, and a command has what its line says.
$ known_db k.db
$ cat >fuseplan.conf <<END
> [fuseplan]
> db = k.db
> target = cpu
> batch = 1
> seq-len = 128
> mask = causal
> END
$ fuseplan query -q --format csv | cut -d, -f1
value
41115
$ fuseplan query -v 2>&1 >out | grep set
fuseplan: set by files: --batch 1 (fuseplan.conf:4), --seq-len 128 (fuseplan.conf:5), --mask causal (fuseplan.conf:6), --target cpu (fuseplan.conf:3)
$ fuseplan query -b 2 -m full 2>&1 | tail -n 1
fuseplan query: nothing is stored in 'k.db' for b=2 s=128 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=full on cpu; 'fuseplan search -b 2 -s 128 -m full --target cpu' measures it; known are '-b 1 -s 128 -m causal', '-b 2 -s 64 -m strided:t=8 -H 8'
$ fuseplan mask sliding | head -n 2
mask      sliding:w=11 at S=128
elements  17.2 % kept (2812 of 16384)
$ script -qec 'fuseplan query 2>/dev/null' typed </dev/null | tr -d '\r' | sed -n '/^next/,$p'
next:
  fuseplan explain best -b 1 -s 128 -m causal --target cpu   # what limits each kernel
  fuseplan export best -b 1 -s 128 -m causal --target cpu -o encoder --build   # the plan as a C library
  fuseplan report -b 1 -s 128 -m causal --target cpu -o report.html   # a page of all that was measured
## What needs no workload takes none: a report is of all, what is forgotten is named.
$ fuseplan report -o r.html
! fuseplan: wrote 'r.html': the plans measured for -b 1 -s 128 -m causal --target cpu, and for 1 other workload
2$ fuseplan db forget
! fuseplan db: 'db forget' needs to know what: a workload (-b N -s N ...), --failed or --older-protocol
$ fuseplan db list --format csv | wc -l
3
$ printf -- '-b 2 -s 64\n' >table
$ fuseplan sweep plan table --format csv
row,shard,state,best.value,best.median_ms,best.us_per_layer,best.device,seconds,doubt,reason
-b 2 -s 64,,missing,,,,,,,
! fuseplan: 0 of 1 rows are done
## A command that takes no such option.
$ fuseplan translate 41115 | tail -n 1
41115 1 4 3 7 9 10 11 12 14 15
$ mkdir sub; cd sub
## Parents are not looked at.
2$ fuseplan query
! fuseplan query: the batch size or the sequence length is not given; add -b N and -s N
=== what replaces what
## A preset, and lengths, in place of all that a lower level says of it.
$ mkdir -p ../home/.config/fuseplan
$ cat >../home/.config/fuseplan/fuseplan.conf <<END
> [fuseplan]
> batch = 4
> heads = 4
> mask = causal
> avg-seq-len = 9
> local-mask = sliding:w=2
> global-every = 2
> score-bias = true
> END
$ list() { fuseplan config list "$@" --format csv | grep -v -e built-in -e 'not set' | cut -d, -f1-3 | sed "s:$HOME:~:"; }
$ list -m full
setting,value,from
batch,4,~/.config/fuseplan/fuseplan.conf:2
mask,full,--mask
heads,4,~/.config/fuseplan/fuseplan.conf:3
score-bias,true,~/.config/fuseplan/fuseplan.conf:8
local-mask,sliding:w=2,~/.config/fuseplan/fuseplan.conf:6
global-every,2,~/.config/fuseplan/fuseplan.conf:7
avg-seq-len,9,~/.config/fuseplan/fuseplan.conf:5
$ list --local-mask none --score-bias=none
setting,value,from
batch,4,~/.config/fuseplan/fuseplan.conf:2
mask,causal,~/.config/fuseplan/fuseplan.conf:4
heads,4,~/.config/fuseplan/fuseplan.conf:3
score-bias,none,--score-bias
local-mask,none,--local-mask
avg-seq-len,9,~/.config/fuseplan/fuseplan.conf:5
$ list --preset bert-mini --lengths 1 | grep -v preset
setting,value,from
batch,4,~/.config/fuseplan/fuseplan.conf:2
lengths,1,--lengths
$ printf '[fuseplan]\npreset = bert-tiny\nheads = 3\nscore-bias = none\n' >fuseplan.conf
$ list | grep -v preset
setting,value,from
batch,4,~/.config/fuseplan/fuseplan.conf:2
heads,3,fuseplan.conf:3
score-bias,none,fuseplan.conf:4
avg-seq-len,9,~/.config/fuseplan/fuseplan.conf:5
$ fuseplan config list --model x 2>&1 | tail -n 1
fuseplan config: --model: there is no 'x'; name the directory of a HuggingFace model, which has config.json and model.safetensors, or a config.json; 'hf download NAME config.json model.safetensors --local-dir DIR' fetches one
=== without files
## For programs: FUSEPLAN_CONFIG.
$ printf '[fuseplan]\ndb = k.db\nheads = 4\n' >fuseplan.conf
1$ FUSEPLAN_CONFIG=off fuseplan config list --format csv | grep fuseplan.conf
$ FUSEPLAN_CONFIG=places fuseplan config list --format csv | grep fuseplan.conf
db,k.db,fuseplan.conf:2,fuseplan.conf,2
2$ FUSEPLAN_CONFIG=no fuseplan config list
! fuseplan config: FUSEPLAN_CONFIG: unknown word 'no'; expected off or places
$ echo wrong >fuseplan.conf
$ FUSEPLAN_CONFIG=off fuseplan translate 41115 | tail -n 1
41115 1 4 3 7 9 10 11 12 14 15
2$ fuseplan translate 41115
! fuseplan translate: fuseplan.conf:1: 'wrong' is in no section; put [fuseplan] above it
## Help and completion do not look.
$ fuseplan config --help | head -n 1
usage: fuseplan config list [OPTION...]
$ fuseplan completion bash | head -n 1
# fuseplan completion for bash: source <(fuseplan completion bash)
$ fuseplan --complete config '' | cut -f1
list
=== wrong files
$ try() { printf "$@" >fuseplan.conf; fuseplan config list; }
2$ try '[fuseplan]\nbacth = 8\n'
! fuseplan config: fuseplan.conf:2: unknown setting 'bacth'; did you mean 'batch'? 'fuseplan config list' prints all settings
2$ try '[fuseplan]\n\n\nbudget = 8\n'
! fuseplan config: fuseplan.conf:4: unknown setting 'budget'; 'fuseplan config list' prints all settings
2$ try '[fuseplan]\nbatch\n'
! fuseplan config: fuseplan.conf:2: 'batch' has no value; expected 'batch = N'
2$ try '[fuseplan]\nbatch = 8x\n'
! fuseplan config: fuseplan.conf:2: batch: '8x' is not a size; give a whole number from 1 to 65536
2$ try '[fuseplan]\ngate = yes\n'
! fuseplan config: fuseplan.conf:2: gate: 'yes' is neither true nor none
2$ try '\377\376[\000'
! fuseplan config: 'fuseplan.conf' is no text: it holds a NUL
2$ try '[fuseplan]\npreset = bert-tiny\nmodel = x\n'
! fuseplan: set by files: --preset bert-tiny (fuseplan.conf:2), --model x (fuseplan.conf:3)
! fuseplan config: --preset and --model are given at once; give one of them
## A value that is wrong together with the rest: where it is from.
$ try '[fuseplan]\nlocal-rope = 10000\nbatch = 1\n' >out
2$ fuseplan query -s 8
! fuseplan: set by files: --batch 1 (fuseplan.conf:3), --local-rope 10000 (fuseplan.conf:2)
! fuseplan query: --local-rope says what local layers are, and there are none; add --local-mask MASK
## A path in the user's file depends on no directory.
$ rm fuseplan.conf; mkdir -p ../home/.config/fuseplan
$ printf '[fuseplan]\nmask = file:m.npy\n' >../home/.config/fuseplan/fuseplan.conf
$ fuseplan config list 2>&1 | sed "s:$HOME:~:"
fuseplan config: ~/.config/fuseplan/fuseplan.conf:2: mask: 'm.npy' depends on the current directory; begin the path with '/' or '~/'
