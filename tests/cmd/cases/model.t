=== train bad
2$ printf '100010100000010 54.5\n' >a.txt; fuseplan train --data a.txt --db m.db
! fuseplan train: a.txt:1: '100010100000010' is not a plan; expected 16 binary digits and a time in ms, such as '1111100011001100 54.524'
2$ fuseplan train
! fuseplan train: nothing to train on; give --data FILE or a workload with -b, -s and -m
2$ fuseplan train --data a.txt -b 1 -s 4
! fuseplan train: a file and a workload are given at once; give --data FILE or a workload with -b, -s and -m
2$ fuseplan train --data a.txt --target cpu
! fuseplan train: a file and a workload are given at once; give --data FILE or a workload with -b, -s and -m
2$ fuseplan train -b 1 -s 4 --name other
! fuseplan train: --name 'other' with a workload, whose only model has no name; leave one of them out
$ ls
a.txt
=== train few plans
## 12 lines, but three plans: too few to hold some out
$ export FUSEPLAN_DB=models.db
$ i=0
$ while [ $i -lt 4 ]; do
>   printf '%s 1%d\n' 1000101001000101 $i 1000101000000101 $i 1000101000000001 $i
>   i=$((i + 1))
> done >times.txt
$ fuseplan train --data times.txt
model    plans  threshold ms  spearman  regret  auc
default      3        11.500  -         -       -
$ fuseplan train --data times.txt --format json
[
 {"name": "default", "plans": 3, "threshold_ms": 11.5, "spearman": null, "top1_regret": null, "auc": null}
]
=== train predict
## Two plans told apart by one bit: the model must find it.
$ for i in 0 1 2 3 4 5 6 7; do
>   printf '100010100%s%s%s0101   %s.5\n' $((i % 2)) $((i / 2 % 2)) $((i / 4)) $((10 + i % 2 * 20))
> done >times.txt
$ fuseplan train --data times.txt --db m.db -q --format csv | cut -d, -f1-3
name,plans,threshold_ms
default,8,10.5
$ fuseplan db check --db m.db
'm.db' is whole
$ fuseplan predict 1000101001000101 1000101000000101 --db m.db | cut -c 1,7-
2 0
1 0
3$ fuseplan predict 1000101001000101 --db m.db --name other
! fuseplan predict: there is no model 'other' in 'm.db'; 'fuseplan train --data FILE --name other' makes one
3$ fuseplan predict 6826 --db m.db --name 'an other'
! fuseplan predict: there is no model 'an other' in 'm.db'; 'fuseplan train --data FILE --name 'an other'' makes one
=== predict top
$ for i in 0 1 2 3 4 5 6 7; do
>   printf '100010100%s%s%s0101   %s.5\n' $((i % 2)) $((i / 2 % 2)) $((i / 4)) $((10 + i % 2 * 20))
> done >times.txt
$ fuseplan train --data times.txt --db m.db -q --format csv >trained
## Two names of one plan count once.
$ fuseplan predict 1000101001000101 1000101000000101 35397 2629 --db m.db --top 1 | cut -d ' ' -f 1,3
35333 0
$ fuseplan predict all --db m.db --top 4 --format csv | wc -l
5
=== words no model
$ known_db k.db
3$ fuseplan predict 5 --db k.db
! fuseplan predict: there is no model 'default' in 'k.db'; 'fuseplan train --data FILE --name default' makes one
2$ fuseplan predict 5 --db k.db --quantile 0.2
! fuseplan predict: --quantile is of a workload's model; that of a file has the one of 'fuseplan train'
3$ fuseplan predict 5 --db k.db --target cpu -b 2 -s 64 -m strided:t=8 -H 8
! fuseplan predict: there are too few plans of b=2 s=64 h=8 w=64 f=2048 l=12 eps=1e-05 dtype=fp32 lengths=full mask=strided:t=8 on cpu in 'k.db' to learn from; 'fuseplan search' of this workload measures more
## That of a workload is trained on its plans.
$ fuseplan predict 5 --db k.db --target cpu -b 1 -s 128 -m causal
108.230 0
=== model damaged
## A model of a file is its rows, which another program changed.
$ printf '0100010111011101 2\n1010001000001011 3\n' >times
$ fuseplan train --data times --name gpu --db k.db -q >/dev/null
$ sqlite3 k.db "UPDATE model SET rows = 'tree 2'; VACUUM"
1$ fuseplan predict 41115 --name gpu --db k.db
! fuseplan predict: the rows stored for model 'gpu' are damaged: gpu:1: 'tree' is not a plan; expected 16 binary digits and a time in ms, such as '1111100011001100 54.524'; train it again
=== replay
## A space of four plans, of which one segment was timed: stage 1 takes 2 s, a plan 0.5.
$ space() {
>   cat <<'END'
> {"format":"fuseplan results","version":1}
> {"study":"1","inputs":{"init":"uniform","seed":0},"protocol":"1","created_utc":"2026-01-01T00:00:00.000Z","target":{"kind":"cpu","device":"d","uuid":"","capability":"","units":1,"driver":"","compiler":"","libraries":""},"workload":{"text":"b=1 s=8 h=2 w=8 f=64 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full","batch":1,"seq_len":8,"mask":"full","heads":2,"head_size":8,"ffn":64,"layers":1,"eps":1e-05,"dtype":"fp32","lengths":"full"}}
> {"study":"1","trial":"segment","choices":["0 generated rows=8"],"status":"ok","stored_utc":"2026-01-01T00:00:00.000Z","median_ms":0.0075,"ci_low_ms":0.0074,"ci_high_ms":0.0076,"sample_count":0,"layers_timed":0,"build_s":1,"verify_s":0.75,"time_s":0.25}
> END
>   while read -r value ms choices; do
>     choices=$(echo "$choices" | sed 's/[0-9][0-9-]*/"& generated x=1"/g; s/" "/","/g')
>     echo "{\"study\":\"1\",\"trial\":\"plan\",\"value\":$value,\"choices\":[$choices],\"status\":\"ok\",\"stored_utc\":\"2026-01-01T00:00:00.000Z\",\"median_ms\":$ms,\"ci_low_ms\":$ms,\"ci_high_ms\":$ms,\"sample_count\":0,\"layers_timed\":0,\"time_s\":0.5}"
>   done <<'END'
> 40000 0.5 0-1 2-4 5-7 8 9-14
> 40001 0.255 0-1 2-4 5-7 8 9-13 14
> 40002 0.25 0-1 2-4 5-7 8 9-12 13 14
> 40003 0.3 0-1 2-4 5-7 8 9-12 13-14
> END
> }
$ space >small.ndjson
$ fuseplan replay small.ndjson --space 40000..40003 --strategy random,additive --budget 4 --seeds 3
space  recorded  strategy  plans  regret  median    95 %  to 1 %
small  whole     random        4  0.0000  0.0000  0.0000       3
small  whole     additive      4  0.0000  0.0000  0.0000       3
$ fuseplan replay small.ndjson --space 40000..40003 --strategy random --budget 4 --seeds 3 --format json
[
 {"space": "small", "path": "small.ndjson", "recorded": "whole", "strategy": "random", "budget": 4, "seeds": 3, "regret_mean": 0.0, "regret_median": 0.0, "regret_p95": 0.0, "plans_to_1pct": 3}
]
$ fuseplan replay small.ndjson --space 40000..40003 --strategy random --budget 4 --seeds 3 --no-segment-times
space  recorded  strategy  plans  regret  median    95 %  to 1 %
small  whole     random        4  0.0000  0.0000  0.0000       3
## Recorded in part: each row says so.
$ fuseplan replay - --space 40000..40010 --strategy random --budget 3 --seeds 1 --format csv <small.ndjson
space,path,recorded,strategy,budget,seeds,regret_mean,regret_median,regret_p95,plans_to_1pct
-,-,in part,random,3,1,0,0,0,2
=== replay bad
$ printf '%s\n' '{"format":"fuseplan results","version":1}' >empty.ndjson
2$ fuseplan replay empty.ndjson
! fuseplan replay: 'empty.ndjson' has plans of 0 workloads, devices or protocols; a replay takes one, as 'fuseplan db export' writes it from a database of its own
$ for noise in 0.05 0.05,-0.1; do
>   fuseplan replay empty.ndjson --noise $noise; echo $?
> done
2
2
! fuseplan replay: --noise: '0.05' is not two shares; give the noise of segments and of plans, such as 0.05,0.05
! fuseplan replay: --noise: -0.1 is out of range; give a number from 0 to 1
2$ fuseplan search -b 1 -s 4 --strategy guided,random
! fuseplan search: --strategy names 2 strategies, and a search has one; 'fuseplan replay' compares several
## One plan of one workload, and plans of two.
$ study() {
>   echo '{"study":"'$1'","inputs":{"init":"uniform","seed":'$1'},"protocol":"1","created_utc":"2026-01-01T00:00:00.000Z","target":{"kind":"cpu","device":"d","uuid":"","capability":"","units":1,"driver":"","compiler":"","libraries":""},"workload":{"text":"b=1 s=8 h=2 w=8 f=64 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full","batch":1,"seq_len":8,"mask":"full","heads":2,"head_size":8,"ffn":64,"layers":1,"eps":1e-05,"dtype":"fp32","lengths":"full"}}'
>   echo '{"study":"'$1'","trial":"plan","value":32768,"choices":["0-14 generated x=1"],"status":"ok","stored_utc":"2026-01-01T00:00:00.000Z","median_ms":1,"ci_low_ms":1,"ci_high_ms":1,"sample_count":0,"layers_timed":0}'
> }
$ (cat empty.ndjson; study 1) >one.ndjson
$ (cat one.ndjson; study 2) >two.ndjson
2$ fuseplan replay one.ndjson
! fuseplan replay: 'one.ndjson': a budget of 64 plans is more than the 1 plans recorded that can run; give at most 1
2$ fuseplan replay one.ndjson --space 40000..40001
! fuseplan replay: 'one.ndjson': no plan of 40000..40001 ran
2$ fuseplan replay one.ndjson --budget 1 --baseline 3,best
! fuseplan replay: --baseline: 'best' is a plan of a database, and replay reads files alone; give values from 0 to 65535
2$ fuseplan replay two.ndjson
! fuseplan replay: 'two.ndjson' has plans of 2 workloads, devices or protocols; a replay takes one, as 'fuseplan db export' writes it from a database of its own
$ head -c -8 one.ndjson >cut.ndjson
2$ fuseplan replay one.ndjson cut.ndjson --budget 1
! fuseplan replay: 'cut.ndjson', line 3: the line has no end; the file was cut short
$ fuseplan replay one.ndjson --budget 1 --seeds 1 --strategy random --format csv
space,path,recorded,strategy,budget,seeds,regret_mean,regret_median,regret_p95,plans_to_1pct
one,one.ndjson,in part,random,1,1,0,0,0,1
