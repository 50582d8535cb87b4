=== help
2$ fuseplan
! usage: fuseplan COMMAND [OPTION...]
! 
! Finds, verifies and explains the fastest fusion plan of an encoder's layer.
! 
!   search       Find the fastest plan of a workload
!   query        Print the best plan known for a workload, measuring nothing
!   explain      Draw a plan's kernels, say what limits them and how its neighbours compare
!   export       Write a plan as a C library, to be linked into other programs
!   ship         Make a C library of a HuggingFace model: search, export, build, verify
!   report       Write a page that shows what was measured: plans, kernels, the search
!   doctor       Check what this machine has, and say what to do about what it lacks
! 
! for research:
!   translate    Say which operators a fusion mask fuses, or which fusion mask fuses these
!   mask         Draw an attention mask and say how dense it is
!   generate     Write the sources of a plan, with a program that runs and times it
!   bench        Build, verify and time plans side by side
!   accuracy     Say what a model loses by fp16, bf16 and fp8, on its weights and real sentences
!   replay       Judge strategies on recorded spaces
!   train        Train a model from a file of times, or judge that of a workload
!   predict      Predict the time of plans with a trained model
!   sweep        Search a table of workloads, on several GPUs and hosts
!   db           List, check, keep and move what is stored
!   config       Say what each setting is, and whether an option, a variable or a file sets it
!   completion   Print a completion script for a shell
! 
! 'fuseplan COMMAND --help' explains a command; 'fuseplan --version' prints the version.
! A file fuseplan.conf sets options for a directory or for you: 'fuseplan config --help'.
$ fuseplan help | sed -n 5p
  search       Find the fastest plan of a workload
$ fuseplan --version | sed 's/ ([0-9a-f]\{12\})$//' # the commit
fuseplan 0.2.0
## No line of help has more than 100 columns.
$ fuseplan help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' >commands
$ while read -r command; do
>   fuseplan "$command" --help all | awk -v command="$command" 'length > 100 { print command ": " $0 }'
> done <commands
$ [ "$(wc -l <commands)" -ge 11 ] && echo "none is wider"
none is wider
## Rare options of workloads are left out, but for who asks.
1$ fuseplan query --help | grep -e --head
$ fuseplan query --help all | grep -e --head
  -H, --heads N              attention heads (12)
  -W, --head-size N          columns of a head (64)
$ for c in accuracy bench db explain export generate predict query report search ship sweep train; do
>   fuseplan $c --help | grep -c -e --head-size -e --rope
> done | sort -u
0
$ fuseplan sweep --help | grep -e '^  collect '
  collect TABLE DIR...  store the texts of --save; print what is missing
=== help mask
$ fuseplan mask --help | sed '/^options/,/^examples/d'
usage: fuseplan mask NAME -s N [OPTION...]

Draw an attention mask and say how dense it is.

A cell of the picture is a block of (query, key) pairs: '#' all kept, '+' some, '.' none.
With lengths, pairs with padding are not kept, and the picture shows batch row 0.

attention masks:
  full                       every key
  causal                     keys up to the query's own position
  strided:t=N                causal: the last t keys and every t-th before (t=sqrt(S))
  fixed:t=N                  causal: the query's group of t keys and the last key of each group
                             (t=sqrt(S))
  sliding:w=N                keys at most w away (w=sqrt(S))
  sliding_causal:w=N         the query's own key and the w before it (w=sqrt(S))
  dilated:w=N,d=N            every d-th key, w of them on each side (w=sqrt(S),d=2)
  longformer:g=N,w=N         keys at most w away; the first g tokens see and are seen by all
                             (g=sqrt(S),w=sqrt(S))
  bigbird:g=N,w=N,n=N,seed=N longformer and n random 64x64 blocks a block row
                             (g=sqrt(S),w=sqrt(S),n=1,seed=0)
  prefix:p=N                 causal, and the first p keys for all (p=S/4)
  document:n=N               n documents side by side, each seeing itself only (n=4)
  file:PATH                  a NumPy file, bool or uint8, (S,S) or (B,S,S)

  fuseplan mask strided -s 128
  fuseplan mask longformer:g=32,w=32 -s 1024 --svg longformer.svg
  fuseplan mask causal -s 64 -b 4 --avg-seq-len 32 --npy causal.npy

exit status:
  0                          done
  1                          failed: something is missing, cannot be read or written, or went wrong
  2                          the command line or a file that it names is wrong; nothing was done
=== what is unknown, and where an option belongs
2$ fuseplan serch
! fuseplan: unknown command 'serch'; did you mean 'search'? expected search, query, explain, export, ship, report, doctor, translate, mask, generate, bench, accuracy, replay, train, predict, sweep, db, config or completion
2$ fuseplan frobnicate
! fuseplan: unknown command 'frobnicate'; expected search, query, explain, export, ship, report, doctor, translate, mask, generate, bench, accuracy, replay, train, predict, sweep, db, config or completion
2$ fuseplan translate 5 --format xml
! fuseplan translate: unknown --format 'xml'; expected table, json, ndjson, csv or markdown
2$ fuseplan bench 5 -z
! fuseplan bench: unknown option '-z'; 'fuseplan bench --help all' lists all
2$ fuseplan bench 5 --batchs 1
! fuseplan bench: unknown option '--batchs'; did you mean '--batch'?
2$ fuseplan translate 5 -b 1
! fuseplan translate: option '--batch' belongs to search, query, explain, export, ship, report, mask, generate, bench, train, predict, sweep, db and config, not to translate
2$ fuseplan translate 5 --quiet=1
! fuseplan translate: option '--quiet' takes no argument
2$ fuseplan bench 5 -b
! fuseplan bench: option '-b' needs an argument
2$ fuseplan query --seq 3 --ba=1 --head
! fuseplan query: option '--head' is ambiguous: it may be --heads or --head-size
## Options in the place of a command.
2$ fuseplan -q search -b 1
! fuseplan: option '-q' in the place of the command; options come after it, and 'fuseplan --help' lists the commands
=== words escaped
## Control characters and bytes that are no UTF-8 do not reach the terminal.
2$ fuseplan "$(printf 'bad\ncommand\033[31m')"
! fuseplan: unknown command 'bad\ncommand\x1b[31m'; expected search, query, explain, export, ship, report, doctor, translate, mask, generate, bench, accuracy, replay, train, predict, sweep, db, config or completion
2$ fuseplan query -b 1 -s 4 -m "$(printf 'mask\377\302\233\t')"
! fuseplan query: unknown attention mask 'mask\xff\xc2\x9b\t'; the masks are full, causal, strided:t=N, fixed:t=N, sliding:w=N, sliding_causal:w=N, dilated:w=N,d=N, longformer:g=N,w=N, bigbird:g=N,w=N,n=N,seed=N, prefix:p=N, document:n=N, file:PATH
2$ fuseplan translate "$(printf '1\0072')"
! fuseplan translate: '1\x072' is not a fusion mask value: it is not a number; give 0..65535 in decimal, 0x hexadecimal or 0b binary, or 16 binary digits
2$ fuseplan mask full -s 4 "$(printf -- '-\377')"
! fuseplan mask: unknown option '-\xff'; 'fuseplan mask --help all' lists all
3$ fuseplan query -b 1 -s 4 --db "$(printf 'caf\303\251\r.db')"
! fuseplan query: there is no database at 'café\r.db' yet: 'fuseplan search' makes one
=== terminal
## On a terminal translate and predict print tables with titles; in a pipe they print plain lines.
$ for i in 0 1 2 3 4 5 6 7; do
>   printf '100010100%s%s%s0101   %s.5\n' $((i % 2)) $((i / 2 % 2)) $((i / 4)) $((10 + i % 2 * 20))
> done >times.txt
$ fuseplan train --data times.txt --db m.db -q --format csv >trained
$ terminal() { script -qec "$*" /dev/null </dev/null | tr -d '\r'; }
$ terminal fuseplan translate 6826 41115
value  bits              canonical  pos0  hand-written  fused ops
 6826  0001101010101010      39594     0  no            0-1 2-3
41115  1010000010011011      41115     1  yes           2-6 8-9 10-11 13-14
$ fuseplan translate 6826 41115
6826 0 2 1 2 3 4
41115 1 4 3 7 9 10 11 12 14 15
$ terminal fuseplan predict 35397 --db m.db | sed 's/  *[0-9.]*  yes.*/ MS yes P/; s/  *[0-9.]*  no.*/ MS no P/'
value  predicted ms  high performance  probability
35397 MS no P
$ fuseplan predict 35397 --db m.db --format json | grep -o '"high_performance": [a-z]*'
"high_performance": false
=== full disk
1$ fuseplan translate 6826 >/dev/full
! fuseplan: cannot write the results: No space left on device
=== completion bash
## What bash offers; it splits words at '=' and ':'.
$ cat >try.sh <<'END'
> eval "$(fuseplan completion bash)"
> offer() { COMP_LINE=$1 COMP_POINT=${#1}; COMPREPLY=(); _fuseplan; echo "${COMPREPLY[@]}"; }
> offer 'fuseplan tr'
> offer 'fuseplan mask --s'
> offer 'fuseplan search --mask str'
> offer 'fuseplan search -m sl'
> offer 'fuseplan query --format '
> offer 'fuseplan search --budget '
> offer 'fuseplan help se'
> offer 'fuseplan generate 41115 -o tr'
> offer 'fuseplan search --format=j'
> END
$ bash try.sh
translate train
--seq-len --svg --seed
strided
sliding sliding_causal
table json ndjson csv markdown

search
try.sh
json
=== completion
2$ fuseplan completion
! fuseplan completion: no operand given; expected bash|zsh|fish, for example: source <(fuseplan completion bash)
2$ fuseplan completion csh
! fuseplan completion: unknown shell 'csh'; did you mean 'zsh'? expected bash, zsh or fish
=== completion words
## What the last word of a command line can be.
$ offer() { echo "[$*]"; fuseplan --complete "$@" | cut -f 1 | tr '\n' ' '; echo; }
$ paths() { echo "[$*]"; fuseplan --complete "$@" | tr '\t' '|'; }
$ offer -
[-]
--help --version 
$ offer help tra
[help tra]
translate train 
$ offer search --preset bert-b
[search --preset bert-b]
bert-base 
$ offer bench b
[bench b]
best 
$ offer generate best 4
[generate best 4]

$ offer db ''
[db ]
list info check forget merge export import 
$ offer query -q --q
[query -q --q]

$ offer no_command ''
[no_command ]

$ paths mask full --svg=pic
[mask full --svg=pic]
:files|--svg=|pic
$ paths generate 41115 -o tr
[generate 41115 -o tr]
:files||tr
$ paths bench 1 --dump ar
[bench 1 --dump ar]
:dirs||ar
