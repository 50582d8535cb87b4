# A query answers from the mask with other parameters, and from the system's database.
cat >old.txt <<'END'
{"format":"fuseplan results","version":1}
{"study":"1234567890abcdef","inputs":{"init":"uniform","seed":0},"protocol":"2","created_utc":"2026-01-01T00:00:00.000Z","target":{"kind":"cpu","device":"a processor","uuid":"1","capability":"avx2","units":2,"driver":"Linux 6.1","compiler":"gcc 12","libraries":"OpenBLAS"},"workload":{"text":"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=sliding:w=2","batch":1,"seq_len":8,"mask":"sliding:w=2","heads":1,"head_size":4,"ffn":16,"layers":1,"eps":1e-05,"dtype":"fp32","lengths":"full"}}
{"study":"1234567890abcdef","trial":"plan","value":41115,"status":"ok","stored_utc":"2026-01-01T00:00:00.000Z","median_ms":2,"ci_low_ms":1.75,"ci_high_ms":2.25,"sample_count":6,"layers_timed":1,"relative_error":0.0,"build_s":0.5,"verify_s":0.25,"time_s":0.125,"choices":["0 generated rows=8","1 generated rows=8","2-6 generated rows=8","7 generated rows=8","8-9 generated rows=8","10-11 generated rows=8","12 generated rows=8","13-14 generated rows=8"]}
{"study":"1234567890abcdef","trial":"plan","value":43690,"status":"ok","stored_utc":"2026-01-01T00:00:01.000Z","median_ms":4,"ci_low_ms":3.5,"ci_high_ms":4.5,"sample_count":6,"layers_timed":1,"relative_error":0.0,"build_s":0.5,"verify_s":0.25,"time_s":0.125,"choices":["0 generated rows=8","1 generated rows=8","2 generated rows=8","3 generated rows=8","4 generated rows=8","5 generated rows=8","6 generated rows=8","7 generated rows=8","8 generated rows=8","9 generated rows=8","10 generated rows=8","11 generated rows=8","12 generated rows=8","13 generated rows=8","14 generated rows=8"]}
END
fuseplan db import old.txt --db a.db -q >out
w='-b 1 -s 8 -H 1 -W 4 -L 1 --target cpu --format csv'
fuseplan query $w -m sliding:w=2 --db a.db 2>said | cut -d, -f1,4; grep -c mask said
fuseplan query $w -m sliding:w=3 --db a.db 2>said | cut -d, -f1,4; grep mask said
fuseplan query $w -m causal --db a.db >out 2>&1; echo $?
export FUSEPLAN_SYSTEM_DB=a.db
fuseplan query $w -m sliding:w=3 --db none.db 2>said | cut -d, -f1,4; grep 'system' said
fuseplan db list --db none.db --format csv | cut -d, -f2,14
FUSEPLAN_SYSTEM_DB=none.db fuseplan query $w -m sliding:w=3 --db none.db; echo $?
ls
