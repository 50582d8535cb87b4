fuseplan search -b 1 -s 4 --strategy guidde; echo $?
fuseplan search -b 1 -s 4 --space 5..1; echo $?
fuseplan search -b 1 -s 4 --space 0..65536; echo $?
fuseplan search -b 1 -s 4 --budget 0; echo $?
fuseplan search -b 1 -s 4 --time-limit soon; echo $?
fuseplan search -b 1 -s 4 --time-limit 3m5s; echo $?
fuseplan search -b 1 -s 4 --time-limit 0.05s; echo $?
fuseplan search -b 1 -s 4 --init wied; echo $?
fuseplan search -b 1 -s 4 41115; echo $?
fuseplan search -b 1 -s 4 --quantile 1; echo $?
fuseplan search -b 1 -s 4 --rigor thorough; echo $?
fuseplan search -b 1 -s 4 --rigor exhaustive --strategy random; echo $?
fuseplan search -b 1 -s 4 --baseline none,43690; echo $?
fuseplan search -b 1 -s 4 --baseline 43690,; echo $?
