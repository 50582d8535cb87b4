# What the last word of a command line can be.
known_db k.db
export FUSEPLAN_DB=k.db
offer() { echo "[$*]"; fuseplan --complete "$@" | cut -f 1 | tr '\n' ' '; echo; }
paths() { echo "[$*]"; fuseplan --complete "$@" | tr '\t' '|'; }
offer tr
offer -
offer help tra
offer mask --s
offer search --mask str
offer search -m strided:
offer search -m strided:t=8,
offer search -b ''
offer search -b 1 -s ''
offer search -b 1,
offer generate best -b 1,
offer search -b 2 --seq-len=6
offer search -b 1 -s 128 -m c
offer search -b 1 -s 128 -m s
offer search --format ''
offer search --format=c
offer search --budget ''
offer search --preset bert-b
offer bench b
offer bench best --baseline none,
offer bench best --baseline 41115,
offer generate best 4
offer db ''
offer db info --
offer completion z
offer query -q --q
offer query --q
offer no_command ''
paths search -m file:a/b
paths mask full --svg=pic
paths generate 41115 -o tr
paths bench 1 --dump ar
fuseplan --complete compare a.db ''; fuseplan --complete compare a.db b.db ''
