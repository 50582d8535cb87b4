=== verdict
## The first lines say how the best plan compares with each baseline, or why nobody can tell and what to do.
$ known_db k.db
$ export FUSEPLAN_DB=k.db
$ q='fuseplan query --target cpu -b 1 -s 128 -m causal'
$ $q -q | head -n 2
verdict      1.093 [1.093, 1.093] times as fast as 43690 (unfused: a kernel for each operator)
             no plan measured is faster than baseline 41115 (attention, norms and activation fused)
$ sqlite3 k.db "UPDATE search SET options = '{\"baselines\":[36507]}'; VACUUM"
$ $q -q | head -n 1
verdict      1.037 [1.037, 1.037] times as fast as 36507
$ sqlite3 k.db "UPDATE trial SET conditions = '{\"waited_share\": 0.43, \"other_cores\": 1.5, \"stopped_share\": 0.0}' WHERE kind = 'final' AND plan = 41115; VACUUM"
$ $q -q | grep -v '^workload' | head -n 2
verdict      no winner: the time of 41115 (attention, norms and activation fused) is unstable: its threads waited 43 % of their time for a core
as measured  1.037 [1.037, 1.037] times as fast as 36507
## A doubt is said once.
$ $q -q | grep -c 'waited 43 %'
1
## Unstable is said wherever the plan is.
$ fuseplan explain best --target cpu -b 1 -s 128 -m causal | grep unstable
unstable     its threads waited 43 % of their time for a core
$ fuseplan export best --target cpu -b 1 -s 128 -m causal -o library 2>&1 | grep unstable
fuseplan: its time is unstable, and it may not be the fastest: its threads waited 43 % of their time for a core
$ sqlite3 k.db "DELETE FROM trial WHERE kind = 'final'; VACUUM"
$ $q -q | head -n 1
verdict      no plan measured is faster than baseline 36507
=== next steps
## A terminal is told what to do next, with the options of the command; a pipe is not.
$ known_db k.db
$ export FUSEPLAN_DB=k.db
$ q='fuseplan query --target cpu -b 1 -s 128 -m causal --db k.db'
$ script -qec "$q" typed </dev/null | tr -d '\r' | sed -n '/^next/,$p'
next:
  fuseplan explain best -b 1 -s 128 -m causal --target cpu --db k.db   # what limits each kernel
  fuseplan export best -b 1 -s 128 -m causal --target cpu --db k.db -o encoder --build   # the plan as a C library
  fuseplan report -b 1 -s 128 -m causal --target cpu --db k.db -o report.html   # a page of all that was measured
$ script -qec "fuseplan query --target cpu -b 1,4 -s 128 -m causal 2>/dev/null" typed </dev/null | tr -d '\r' | sed -n '/^next/,$p'
next:
  fuseplan search -b 1,4 -s 128 -m causal --target cpu   # measures what has no plan
$ sqlite3 k.db "UPDATE workload SET seq_len = 128, mask = 'causal', heads = 12, ffn = 3072 WHERE batch = 2; VACUUM"
$ script -qec "fuseplan query --target cpu -b 1,2 -s 128 -m causal 2>/dev/null" typed </dev/null | tr -d '\r' | sed -n '/^next/,$p'
next:
  fuseplan export best -b 1,2 -s 128 -m causal --target cpu -o encoder --build   # one C library of all sizes
## They begin with the program as it was called, also where its directory has a blank.
$ mkdir 'a dir'; ln -s "$(command -v fuseplan)" 'a dir/fuseplan'
$ script -qec "'a dir/fuseplan' ${q#fuseplan}" typed </dev/null | tr -d '\r' | sed -n 's/^  \(.*\) -o report.html .*/\1/p' | tee step
'a dir/fuseplan' report -b 1 -s 128 -m causal --target cpu --db k.db
$ sh -c "$(cat step) -o 'a dir/report.html' -q" && ls 'a dir'
fuseplan
report.html
1$ $q 2>&1 | grep next
1$ script -qec "$q -q" typed </dev/null | grep next
