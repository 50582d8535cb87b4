# A range where one value is wanted; sizes beyond any; values that are not canonical.
fuseplan bench 0..10 -b 1 -s 4; echo $?
fuseplan generate all -b 1 -s 4 -o d; echo $?
fuseplan query -b 1 -s 99999999999; echo $?
fuseplan query -b 1 -s 4 --avg-seq-len 2147483648; echo $?
fuseplan mask causal -s 2147483647 -b 99999999999999999999; echo $?
FUSEPLAN_CC=/none/cc fuseplan search --target cpu -b 1 -s 4 --space 24420..24420; echo $?
FUSEPLAN_CC=/none/cc fuseplan search --target cpu -b 1 -s 4 --space 24400..24500; echo $?
FUSEPLAN_CC=/none/cc fuseplan search --target cpu -b 1 -s 4 --space 41115..41115; echo $?
