=== query near
## A query answers from the mask with other parameters.
$ cp "$CASES/results.ndjson" old.txt
$ fuseplan db import old.txt --db a.db -q >out
$ w='-b 1 -s 8 -H 1 -W 4 -L 1 --target cpu --format csv'
1$ fuseplan query $w -m sliding:w=2 --db a.db 2>said | cut -d, -f1,4; grep -c mask said
value,median_ms
41115,2
0
$ fuseplan query $w -m sliding:w=3 --db a.db 2>said | cut -d, -f1,4; grep mask said
value,median_ms
41115,2
fuseplan: the answer differs in attention mask: measured with 'sliding:w=2', asked for 'sliding:w=3'
3$ fuseplan query $w -m causal --db a.db >out 2>&1
$ ls
a.db
old.txt
out
said
=== query top
## The best plan first, whatever the search said; then the others, like with like.
$ known_db k.db
$ export FUSEPLAN_DB=k.db
$ fuseplan query --target cpu -b 1 -s 128 -m causal -q --top 3 | tail -n 5

rank  value  fused ops                     ms      low     high  us/layer  compared  x best
   1  41115  2-6 8-9 10-11 13-14      108.000  106.920  109.080    9000.0  yes        1.000
   2  32769  0-13                     108.500  107.415  109.585    9041.7  no         0.995
   3  36507  0-2 3-5 8-9 10-11 13-14  112.000  110.880  113.120    9333.3  yes        1.037
$ fuseplan query --target cpu -b 1 -s 128 -m causal --top 9 2>&1 >out | grep side
fuseplan: 32769 took less time in its search than 41115, but the two were not timed side by side; 'fuseplan bench 41115 32769 -b 1 -s 128 -m causal --target cpu' does that
$ fuseplan query --target cpu -b 1 -s 128 -m causal -q --top 9 --format csv
rank,value,fused,handwritten,median_ms,ci_low_ms,ci_high_ms,us_per_layer,compared,times_best
1,41115,2-6 8-9 10-11 13-14,true,108,106.92,109.08,9000,true,1
2,32769,0-13,false,108.5,107.415,109.585,9041.66667,false,0.995412844
3,36507,0-2 3-5 8-9 10-11 13-14,false,112,110.88,113.12,9333.33333,true,1.03703704
4,43690,,false,118,116.82,119.18,9833.33333,true,1.09259259
$ fuseplan query --target cpu -b 2 -s 64 -m strided:t=8 -H 8 -q --top 2 --format ndjson | grep -o '"top":.*'
"top":[{"rank":1,"value":43690,"fused":"","segments":[[0,0],[1,1],[2,2],[3,3],[4,4],[5,5],[6,6],[7,7],[8,8],[9,9],[10,10],[11,11],[12,12],[13,13],[14,14]],"handwritten":false,"median_ms":50.0,"ci_low_ms":49.5,"ci_high_ms":50.5,"us_per_layer":4166.66667,"compared":false,"times_best":1.0}]}
=== query baselines of several searches
## A ratio stands below the baseline that it is of; a search without baselines has compared its finalists.
$ grep -e '"format"' -e 0d73146f87846a86 "$CASES/../data/known.ndjson" >one.txt
$ sed 's/0d73146f87846a86/1d73146f87846a86/; s/5047baf0/6047baf0/g; s/b=1 s=128/b=2 s=128/; s/"batch":1/"batch":2/
> s/baselines[^]]*]/baselines\\": [36507, 43690]/' one.txt >two.txt
$ sed 's/0d73146f87846a86/2d73146f87846a86/; s/5047baf0/7047baf0/g; s/b=1 s=128/b=3 s=128/; s/"batch":1/"batch":3/
> s/baselines[^]]*]/baselines\\": []/' one.txt >three.txt
$ fuseplan db import one.txt two.txt three.txt --db k.db -q >out
$ fuseplan query --target cpu -b 1,2,3 -s 128 -m causal -q --format markdown --db k.db
| batch | seq-len | plan | us/layer | x unfused 43690 | x fused 41115 | verdict |
| --- | --- | --- | --- | --- | --- | --- |
| 1 | 128 | 41115 | 9000.0 | 1.09 | 1.00 | a baseline |
| 2 | 128 | 41115 | 9000.0 | 1.09 | - | faster |
| 3 | 128 | 41115 | 9000.0 | - | - | fastest |
=== best
## 'best' is the best plan known, wherever a workload is given.
$ known_db k.db
$ export FUSEPLAN_DB=k.db
$ fuseplan generate best --target cpu -b 1 -s 128 -m causal -o plan 2>&1 | head -n 1
fuseplan: the best plan known is 41115 (attention, norms and activation fused): 108.000 ms on 'a processor', another device than the one here
$ grep -o '"value": [0-9]*' plan/manifest.json
"value": 41115
$ fuseplan predict best --target cpu -b 1 -s 128 -m causal 2>said; head -n 1 said
109.157 0
fuseplan: the best plan known is 41115 (attention, norms and activation fused): 108.000 ms on 'a processor', another device than the one here
=== best unknown
## Where nothing is known, it exits 3 and names the workloads that are known.
3$ fuseplan bench best --target cpu -b 1 -s 128 --db none.db
! fuseplan bench: there is no database at 'none.db' yet: 'fuseplan search' makes one
$ known_db k.db
$ export FUSEPLAN_DB=k.db
3$ fuseplan bench best --target cpu -b 1 -s 128
! fuseplan bench: nothing is stored in 'k.db' for b=1 s=128 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=full on cpu; 'fuseplan search -b 1 -s 128 --target cpu' measures it; known are '-b 1 -s 128 -m causal', '-b 2 -s 64 -m strided:t=8 -H 8'
$ fuseplan query --target cuda -b 1 -s 128 --precision qkv,out 2>&1 | grep -o "'fuseplan.*measures it"
'fuseplan search -b 1 -s 128 --target cuda --precision qkv,out' measures it
3$ fuseplan bench 1 --target cpu -b 1 -s 128 --baseline best -q
! fuseplan bench: --baseline: nothing is stored in 'k.db' for b=1 s=128 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=full on cpu; 'fuseplan search -b 1 -s 128 --target cpu' measures it; known are '-b 1 -s 128 -m causal', '-b 2 -s 64 -m strided:t=8 -H 8'
2$ fuseplan predict best
! fuseplan predict: 'best' is the best plan of a workload, and none is given; add -b, -s and -m
$ ls
k.db
=== explain
## The chain as boxes; a neighbour's time is compared with the plan's where both were measured alike.
$ known_db k.db
$ export FUSEPLAN_DB=k.db
$ fuseplan explain 41115 --target cpu -b 1 -s 128 -m causal | sed '/^+- op 0 /,/^     |/d; /^+- op 7 /,/^+- op 12 /d; /^41092/,/^48996/d; /^41099/,/^45211/d; /^41124/,/^42852/d'
workload     b=1 s=128 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=causal on cpu
plan         41115 (attention, norms and activation fused), 8 kernels a layer
time         108.000 ms [106.920, 109.080] for 12 layers, 9000.0 us a layer
kernels      1900.0 us a layer, each alone
at least     538.5 us a layer, at 4027 GFLOP/s and 76.02 GB/s: the highest rates of a segment here
measured on  a processor

+- op 1 -----------------------------------------------------------------------------------------+
|  1 qkv_bias_split      + bqkv, split into q, k, v, each to heads                               |
| time      150.0 us [148.5, 151.5] alone; moving its data alone takes 31.2 us at least          |
| by        generated lowering=tiled row_block=256 col_block=even                                |
| reads     qkv_gemm 1.1 MiB, bqkv 9.0 KiB                                                       |
| writes    qkv_bias_split 1.1 MiB                                                               |
+------------------------------------------------------------------------------------------------+
     |
+- ops 2-6 --------------------------------------------------------------------------------------+
|  2 scores              q @ k^T / sqrt(W)                                                       |
|  3 mask                drop the keys that the mask does not keep                               |
|  4 softmax             softmax over the keys                                                   |
|  5 context             probs @ v                                                               |
|  6 merge_heads         heads side by side again                                                |
| time      550.0 us [544.5, 555.5] alone; moving its data alone takes 20.7 us at least          |
| by        handwritten                                                                          |
| reads     qkv_bias_split 1.1 MiB                                                               |
| on chip   scores 387.0 KiB, mask 387.0 KiB, softmax 387.0 KiB, context 384.0 KiB               |
| writes    merge_heads 384.0 KiB                                                                |
+------------------------------------------------------------------------------------------------+
     |
| 12 ffn2_gemm           @ W2                                                                    |
| time      150.0 us [148.5, 151.5] alone; its arithmetic alone takes 150.0 us at least          |
| by        generated lowering=tiled row_block=128 col_block=even                                |
| reads     ffn1_bias_gelu 1.5 MiB, w2 9.0 MiB                                                   |
| writes    ffn2_gemm 384.0 KiB                                                                  |
+------------------------------------------------------------------------------------------------+
     |
+- ops 13-14 ------------------------------------------------------------------------------------+
| 13 ffn2_bias_residual  + b2, + layernorm1's result                                             |
| 14 layernorm2          layernorm(gamma2, beta2)                                                |
| time      250.0 us [247.5, 252.5] alone; moving its data alone takes 15.6 us at least          |
| by        generated lowering=tiled row_block=256 col_block=even                                |
| reads     layernorm1 384.0 KiB, ffn2_gemm 384.0 KiB, b2 3.0 KiB, gamma2 3.0 KiB,               |
|           beta2 3.0 KiB                                                                        |
| on chip   ffn2_bias_residual 384.0 KiB                                                         |
| writes    layernorm2 384.0 KiB                                                                 |
+------------------------------------------------------------------------------------------------+

plans with one cut less, one more or one elsewhere:
value  change                                  ms  slower, %  its time is
40804  fuse 0 and 1                       107.400       -0.6  predicted from its segments
41060  fuse 6 and 7                       107.400       -0.6  predicted from its segments
 8347  generated attention                108.000        0.0  predicted from its segments
41108  cut after 10                       108.600        0.6  predicted from its segments
44900  cut after 2                        108.600        0.6  predicted from its segments
of 2 others nothing is known
$ fuseplan explain best --target cpu -b 1 -s 128 -m causal --format csv
ops.0,ops.1,operators,implementation,schedule,median_us,ci_low_us,ci_high_us,flops,bytes,least_us,bound
0,0,qkv_gemm,generated,lowering=tiled row_block=128 col_block=even,150,148.5,151.5,452984832,8650752,113.793103,memory
1,1,qkv_bias_split,generated,lowering=tiled row_block=256 col_block=even,150,148.5,151.5,0,2368512,31.1557112,memory
2,6,scores+mask+softmax+context+merge_heads,handwritten,,550,544.5,555.5,25362432,1572864,20.6896552,memory
7,7,out_gemm,generated,lowering=tiled row_block=128 col_block=even,150,148.5,151.5,150994944,3145728,41.3793103,memory
8,9,out_bias_residual+layernorm1,generated,lowering=tiled row_block=256 col_block=even,250,247.5,252.5,0,1188864,15.6384698,memory
10,11,ffn1_gemm+ffn1_bias_gelu,generated,lowering=tiled row_block=128 col_block=even,250,247.5,252.5,603979776,11415552,150.161638,memory
12,12,ffn2_gemm,generated,lowering=tiled row_block=128 col_block=even,150,148.5,151.5,603979776,11403264,150,compute
13,14,ffn2_bias_residual+layernorm2,generated,lowering=tiled row_block=256 col_block=even,250,247.5,252.5,0,1188864,15.6384698,memory
$ fuseplan explain 0xa09a --target cpu -b 1 -s 128 -m causal | grep '^time\|compared\|41115'
time         unknown
41115  fuse 13 and 14  109.000  measured in a search
=== explain unknown
## Without stored times the kernels are explained all the same; 'best' needs some.
$ fuseplan explain 32769 --target cpu -b 2 -s 64 -m strided:t=8 --lengths 64,40 | sed '1,/^| 13/d'
| time      not measured alone                                                                   |
| by        generated lowering=tiled row_block=256 col_block=even                                |
| reads     x 312.0 KiB, wqkv 6.8 MiB, bqkv 9.0 KiB, wo 2.2 MiB, bo 3.0 KiB, gamma1 3.0 KiB,     |
|           beta1 3.0 KiB, w1 9.0 MiB, b1 12.0 KiB, w2 9.0 MiB, b2 3.0 KiB                       |
| on chip   qkv_gemm 936.0 KiB, scores 50.6 KiB, mask 50.6 KiB, softmax 50.6 KiB,                |
|           context 312.0 KiB, out_gemm 312.0 KiB, ffn1_gemm 1.2 MiB, ffn2_gemm 312.0 KiB        |
| in memory qkv_bias_split 936.0 KiB, merge_heads 312.0 KiB, out_bias_residual 312.0 KiB,        |
|           layernorm1 312.0 KiB, ffn1_bias_gelu 1.2 MiB                                         |
| writes    ffn2_bias_residual 312.0 KiB                                                         |
+------------------------------------------------------------------------------------------------+
     |
+- op 14 ----------------------------------------------------------------------------------------+
| 14 layernorm2          layernorm(gamma2, beta2)                                                |
| time      not measured alone                                                                   |
| by        generated lowering=tiled row_block=256 col_block=even                                |
| reads     ffn2_bias_residual 312.0 KiB, gamma2 3.0 KiB, beta2 3.0 KiB                          |
| writes    layernorm2 312.0 KiB                                                                 |
+------------------------------------------------------------------------------------------------+
! fuseplan: no times of this workload are stored; 'fuseplan search -b 2 -s 64 -m strided:t=8 --lengths 64,40 --target cpu' measures it
## What the longest lines say fits their boxes.
$ fuseplan explain 43690 --target cpu -b 1 -s 64 --rope 100 --score-bias --activation quick_gelu --gate -q | grep '^|  *\(1\|3\|11\) '
|  1 qkv_bias_rope_split  + bqkv, split into q, k, v, each to heads; q, k turned by place        |
|  3 bias_mask           + bias of head and distance, drop the keys that the mask does not keep  |
| 11 ffn1_bias_quick_gelu_gate  + b1, quick_gelu(even columns) * odd columns                     |
=== small times
## Times below 1 ms have five decimals in tables; commands on a page name the inputs that are not the usual ones.
$ cat >small.txt <<'END'
> {"format":"fuseplan results","version":1}
> {"study":"1234567890abcdef","inputs":{"init":"wide","seed":0},"protocol":"7","created_utc":"2026-01-01T00:00:00.000Z","target":{"kind":"cpu","device":"a processor","uuid":"1","capability":"avx2","units":2,"driver":"Linux 6.1","compiler":"gcc 12","libraries":"OpenBLAS"},"workload":{"text":"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=sliding:w=2","batch":1,"seq_len":8,"mask":"sliding:w=2","heads":1,"head_size":4,"ffn":16,"layers":1,"eps":1e-05,"dtype":"fp32","lengths":"full"}}
> {"study":"1234567890abcdef","trial":"plan","value":41115,"status":"ok","stored_utc":"2026-01-01T00:00:00.000Z","median_ms":0.01234,"ci_low_ms":0.01231,"ci_high_ms":0.0124,"sample_count":6,"layers_timed":1,"relative_error":0.0,"build_s":0.5,"verify_s":0.25,"time_s":0.125,"choices":["0 generated rows=8","1 generated rows=8","2-6 generated rows=8","7 generated rows=8","8-9 generated rows=8","10-11 generated rows=8","12 generated rows=8","13-14 generated rows=8"]}
> END
$ fuseplan db import small.txt --db a.db -q
from       results  added  known  conflicts  replaced
small.txt        1      1      0          0         0
$ fuseplan db list --db a.db
workload                                         best plan       ms  trials  measured    device
-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1 --init       41115  0.01234       1  2026-01-01  a processor
wide
$ fuseplan query -b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1 --target cpu --init wide --db a.db --top 1 -q | tail -n 2
rank  value  fused ops                 ms      low     high  us/layer  compared  x best
   1  41115  2-6 8-9 10-11 13-14  0.01234  0.01231  0.01240      12.3  no         1.000
$ fuseplan report --db a.db -o page.html -q; grep -o '"options":"[^"]*"' page.html
"options":"-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1 --init wide --target cpu"
## Names in other encodings than UTF-8 are shown, too.
$ cp small.txt "$(printf 'caf\351.txt')"
$ fuseplan db import "$(printf 'caf\351.txt')" --db b.db
from      results  added  known  conflicts  replaced
caf?.txt        1      1      0          0         0
=== tables fit
## No line of a table has more than 100 columns; wide cells take several lines.
$ known_db k.db
$ export FUSEPLAN_DB=k.db
$ fuseplan query --target cpu -b 1 -s 128 -m causal -q >report
$ sed -n '4,$p' report | sed 's/, 20[0-9-]* [0-9:]* UTC/, DATE/'
best plan    41115 (attention, norms and activation fused)

ops    implementation                                         alone, us  operators
0      generated lowering=tiled row_block=128 col_block=even      150.0  qkv_gemm
1      generated lowering=tiled row_block=256 col_block=even      150.0  qkv_bias_split
2-6    handwritten                                                550.0  scores+mask+softmax+
                                                                         context+merge_heads
7      generated lowering=tiled row_block=128 col_block=even      150.0  out_gemm
8-9    generated lowering=tiled row_block=256 col_block=even      250.0  out_bias_residual+
                                                                         layernorm1
10-11  generated lowering=tiled row_block=128 col_block=even      250.0  ffn1_gemm+ffn1_bias_gelu
12     generated lowering=tiled row_block=128 col_block=even      150.0  ffn2_gemm
13-14  generated lowering=tiled row_block=256 col_block=even      250.0  ffn2_bias_residual+
                                                                         layernorm2

time         108.000 ms [106.920, 109.080] for 12 layers, 9000.0 us a layer
measured on  a processor, DATE
baseline     43690 (unfused: a kernel for each operator): 118.000 ms [116.820, 119.180]
runner-up    1.037 [1.037, 1.037] times as fast as 36507
measured     4 of 16640 plans
$ awk 'length > 100 && !/^workload/' report
$ fuseplan query --target cpu -b 1 -s 128 -m causal -q --format csv | sed 's/,20[0-9T:.-]*Z/,DATE/g'
value,fused,handwritten,median_ms,ci_low_ms,ci_high_ms,trials_new,trials_total,space,stopped_by,us_per_layer,device,measured_utc,compared,unstable,packed
41115,2-6 8-9 10-11 13-14,true,108,106.92,109.08,0,4,16640,,9000,a processor,DATE,true,,false
$ sqlite3 k.db "DELETE FROM trial WHERE kind = 'final'; VACUUM"
$ fuseplan query --target cpu -b 1 -s 128 -m causal -q >report
$ awk '/^time/ || length > 100 && !/^workload/' report
time         107.000 ms [105.930, 108.070] for 12 layers, 8916.7 us a layer (not yet compared)
## A long word is not cut: whoever copies a name from a table gets all of it.
$ word=a_name_of_eighty_characters_$(printf %052d 1)
$ sqlite3 k.db "UPDATE schedule SET knobs = 'tile=$word split=1'
>   WHERE segment IN (SELECT id FROM segment WHERE first_op = 7 AND last_op = 7); VACUUM"
$ fuseplan query --target cpu -b 1 -s 128 -m causal -q | grep -A 2 '^7 '
7      generated                                                                                  150.0  out_gemm
       tile=a_name_of_eighty_characters_0000000000000000000000000000000000000000000000000001
       split=1
=== report bad
$ export FUSEPLAN_DB=none.db
2$ fuseplan report
! fuseplan report: no file to write is named; add '-o report.html'
$ sqlite3 empty.db 'CREATE TABLE t (a)'
1$ fuseplan report -o report.html --db empty.db
! fuseplan report: database 'empty.db' belongs to another application (application_id 0x00000000): name another file with --db or FUSEPLAN_DB
$ echo '0000000000000000 1
> 0000000000000001 2' >times.txt
$ fuseplan train -q --data times.txt >/dev/null
3$ fuseplan report -o report.html
! fuseplan report: no plan that works is stored in 'none.db'; 'fuseplan search' measures some
$ ls
empty.db
none.db
times.txt
=== report mask file
## A page of a mask from a file: its commands name the file, quoted, or its hash if no option did.
$ known_db k.db
$ export FUSEPLAN_DB=k.db
## The bits of a mask with a name are that mask.
$ fuseplan mask causal -s 128 --npy causal.npy >/dev/null
$ fuseplan query --target cpu -b 1 -s 128 -m file:causal.npy 2>/dev/null | grep -o "mask=[a-z]*"
mask=causal
$ fuseplan mask sliding:w=3 -s 128 --npy "my mask.npy" >/dev/null
$ hash=$(fuseplan query --target cpu -b 1 -s 128 -m "file:my mask.npy" 2>&1 | grep -o "mask=file:[0-9a-f]*")
$ sqlite3 k.db "UPDATE workload SET text = replace(text, 'mask=causal', '$hash'), mask = substr('$hash', 6) WHERE seq_len = 128;
>   DELETE FROM trial WHERE study IN (SELECT study.id FROM study JOIN workload ON workload.id = workload WHERE seq_len = 64); VACUUM"
$ fuseplan report -o last.html 2>&1 | sed 's/file:[0-9a-f]*/file:HASH/'
fuseplan: wrote 'last.html': the plans measured for -b 1 -s 128 -m file:HASH --target cpu
$ fuseplan report --target cpu -b 1 -s 128 -m "file:my mask.npy" -o named.html
! fuseplan: wrote 'named.html': the plans measured for -b 1 -s 128 -m 'file:my mask.npy' --target cpu
=== escapes
## What a compiler or another program put into a database reaches no terminal as it is.
$ known_db k.db
$ export FUSEPLAN_DB=k.db
$ sqlite3 k.db "UPDATE trial SET status = 'failed', reason_code = 'compile', median_ms = NULL,
>   ci_low_ms = NULL, ci_high_ms = NULL, reason = CAST(x'1b5d303b6f776e6564079b0a' AS TEXT)
>   WHERE plan = 43690; VACUUM"
1$ fuseplan query --target cpu -b 1 -s 128 -m causal
! fuseplan query: database 'k.db' holds what no fuseplan stores: table 'trial', trial 3: 'reason' is '\x1b]0;owned\x07?\n', expected a text in UTF-8 without control characters: 'fuseplan db check' names all such rows: remove them with sqlite3, or move the file away to start afresh
