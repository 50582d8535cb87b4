=== bench bad
2$ fuseplan bench -b 1 -s 4
! fuseplan bench: no operand given; expected VALUE... or --op attention, for example: fuseplan bench 41115 -b 1 -s 128 -m causal
2$ fuseplan bench 1 2 -b 1 -s 4 --dump d
! fuseplan: 1 names the same plan as 32769
! fuseplan: 2 names the same plan as 32770
! fuseplan bench: --dump writes one plan, and 2 are given; give one value
2$ fuseplan bench 5 -b 1 -s 4 --baseline 43690,70000
! fuseplan: 5 names the same plan as 32773
! fuseplan bench: --baseline: '70000' is not a fusion mask value: it is above 65535; give 0..65535 in decimal, 0x hexadecimal or 0b binary, or 16 binary digits
$ fuseplan bench 41115 -b 1 -s 4 --baseline 1,2,3,4,5,6,7,8,9,10 2>said; echo $?; tail -n 1 said; rm said
2
fuseplan bench: --baseline: more than 8 plans are given; name fewer
$ ls
=== sandbox
2$ FUSEPLAN_SANDBOX=OFF fuseplan bench 41115 -b 1 -s 4 --target cpu
! fuseplan bench: FUSEPLAN_SANDBOX: unknown word 'OFF'; expected off
$ FUSEPLAN_SANDBOX=0 fuseplan doctor --format csv | grep sandbox
missing,sandbox,FUSEPLAN_SANDBOX: unknown word '0'; expected off,true,
=== bench op bad
## Command lines and files that `bench --op attention` refuses.
$ refused() {
>   fuseplan bench "$@" 2>&1
>   echo $?
> }
$ refused 41115 --op attention -b 1 -s 8
fuseplan bench: '41115': --op attention times that operation alone and takes no VALUE; leave one of them out
2
$ refused --op attention -b 1 -s 8 --baseline none
fuseplan bench: --baseline is about plans, and --op attention times none; leave one of them out
2
$ refused --op attention -b 1 -s 8 --force
fuseplan bench: --force is about the directory of --dump
2
$ refused --op attention -b 1,2 -s 8 --dump d
fuseplan bench: --dump writes one workload, and 2 are asked for; give one batch size and one sequence length
2
$ ls
=== bench weights bad
$ echo none >short
2$ fuseplan bench 32800 -b 1 -s 4 --target cpu --weights short --fail-above 2
! fuseplan bench: --fail-above compares with stored times, and those of trained weights are not stored; leave it or --weights out
$ rm short
$ ls
=== search again retry
2$ fuseplan search -b 1 -s 8 --again --retry-failed
! fuseplan search: --again times nothing but the best plan and the baselines, and --retry-failed what failed; leave one of them out
=== search bad
2$ fuseplan search -b 1 -s 4 --strategy guidde
! fuseplan search: unknown --strategy 'guidde'; did you mean 'guided'? expected guided, additive, xgb, random, annealing or reward
2$ fuseplan search -b 1 -s 4 --budget 0
! fuseplan search: --budget: 0 is out of range; give a number from 1 to 16640
2$ fuseplan search -b 1 -s 4 --budget 01
! fuseplan search: --budget: '01' is not a whole number; give one from 1 to 16640
2$ fuseplan search -b 1 -s 4 --time-limit soon
! fuseplan search: --time-limit: 'soon' is not a time from 0.1s to 1000h; write 90, 90s, 3m or 1.5h
2$ fuseplan search -b 1 -s 4 41115
! fuseplan search: unexpected operand '41115'; expected options only, for example: fuseplan search -b 1 -s 128 -m causal
2$ fuseplan search -b 1 -s 4 --rigor exhaustive --strategy random
! fuseplan search: --strategy 'random' with --rigor exhaustive, which asks no strategy; leave one of them out
=== search hangup
## A terminal that closes sends SIGHUP: the search ends as after Ctrl-C.  nohup(1) has it ignored.
$ cat >compiler <<'END'
> #!/bin/sh
> kill -HUP "$(sed 's/.*) . \([0-9]*\).*/\1/' /proc/$PPID/stat)" # the supervisor's parent
> [ -e ignored ] && { echo 'made up: no compiler' >&2; exit 1; }
> exec sleep 60
> END
$ chmod +x compiler
130$ fuseplan search -b 1 -s 8 --target cpu --compiler ./compiler -q
! fuseplan search: interrupted
$ touch ignored
1$ (trap '' HUP; fuseplan search -b 1 -s 8 --target cpu --compiler ./compiler -q)
! fuseplan search: './compiler --version' failed (exit status 1: made up: no compiler): not a working compiler; install a C compiler with OpenMP and OpenBLAS: apt install gcc libc6-dev libopenblas-openmp-dev
=== cache bad
1$ FUSEPLAN_CACHE=/proc/none fuseplan bench 41115 -b 1 -s 4 -H 1 -W 4 -L 1 --db d.db --target cpu
! fuseplan bench: the cache of compiled code is not usable; set FUSEPLAN_CACHE to a directory that can be written: cannot create directory '/proc/none': No such file or directory
$ ls
=== cache full
## A cache that takes no binary: the compiler is not to blame.
$ export FUSEPLAN_CACHE="$PWD/cache"
$ fuseplan doctor >said
$ for binary in cache/binaries/*; do
>   rm "$binary"
>   mkdir -p "$binary/in_the_way"
> done
$ fuseplan bench 41115 -b 1 -s 4 -H 1 -W 4 -L 1 --db d.db --target cpu 2>&1 |
>   sed "s|'.*/cache|'cache|; s/[0-9a-f]\{32\}/HASH/"
fuseplan bench: the compiler was tried twice; is the disk full, memory short, or does another program stop it: the cache cannot be written (is its disk full, or short of inodes?); FUSEPLAN_CACHE names another directory: cannot write 'cache/binaries/HASH.bin': Is a directory
=== no compiler
## Nothing is left behind.
1$ FUSEPLAN_CC=/none/cc fuseplan bench 41115 -b 1 -s 4 -H 1 -W 4 -L 1 --db d.db --target cpu
! fuseplan bench: FUSEPLAN_CC: no compiler '/none/cc' found; install a C compiler with OpenMP and OpenBLAS: apt install gcc libc6-dev libopenblas-openmp-dev, or name another with --compiler or FUSEPLAN_CC
$ ls
=== moved build
## A tree that was moved with its build directory.
$ mkdir -p build/release
$ echo CMAKE_HOME_DIRECTORY:INTERNAL=/no/tree >build/release/CMakeCache.txt
$ cp "$CASES/../../run" .
$ ./run build 2>&1 | sed "s,$PWD,HERE,"
run: build/ was made in '/no/tree', and the tree is now in 'HERE'; delete build/
