# Faster and slower plans; exit 4 if one got slower, 3 where none is common.
cat >old.txt <<'END'
{"format":"fuseplan results","version":1}
{"study":"1234567890abcdef","inputs":{"init":"uniform","seed":0},"protocol":"2","created_utc":"2026-01-01T00:00:00.000Z","target":{"kind":"cpu","device":"a processor","uuid":"1","capability":"avx2","units":2,"driver":"Linux 6.1","compiler":"gcc 12","libraries":"OpenBLAS"},"workload":{"text":"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=sliding:w=2","batch":1,"seq_len":8,"mask":"sliding:w=2","heads":1,"head_size":4,"ffn":16,"layers":1,"eps":1e-05,"dtype":"fp32","lengths":"full"}}
{"study":"1234567890abcdef","trial":"plan","value":41115,"status":"ok","stored_utc":"2026-01-01T00:00:00.000Z","median_ms":2,"ci_low_ms":1.75,"ci_high_ms":2.25,"sample_count":6,"layers_timed":1,"relative_error":0.0,"build_s":0.5,"verify_s":0.25,"time_s":0.125,"choices":["0 generated rows=8","1 generated rows=8","2-6 generated rows=8","7 generated rows=8","8-9 generated rows=8","10-11 generated rows=8","12 generated rows=8","13-14 generated rows=8"]}
{"study":"1234567890abcdef","trial":"plan","value":43690,"status":"ok","stored_utc":"2026-01-01T00:00:01.000Z","median_ms":4,"ci_low_ms":3.5,"ci_high_ms":4.5,"sample_count":6,"layers_timed":1,"relative_error":0.0,"build_s":0.5,"verify_s":0.25,"time_s":0.125,"choices":["0 generated rows=8","1 generated rows=8","2 generated rows=8","3 generated rows=8","4 generated rows=8","5 generated rows=8","6 generated rows=8","7 generated rows=8","8 generated rows=8","9 generated rows=8","10 generated rows=8","11 generated rows=8","12 generated rows=8","13 generated rows=8","14 generated rows=8"]}
END
sed '/"value":41115/s/"stored_utc":"2026-01-01/"stored_utc":"2026-02-01/;s/"median_ms":2,"ci_low_ms":1.75,"ci_high_ms":2.25/"median_ms":3,"ci_low_ms":2.5,"ci_high_ms":3.5/;s/gcc 12/gcc 13/' old.txt >new.txt
fuseplan db import old.txt --db old.db -q >out
fuseplan db import new.txt --db new.db -q >out
fuseplan compare old.db new.db; echo $?
fuseplan compare new.db old.db; echo $?
fuseplan compare old.db old.db; echo $?
fuseplan compare old.db new.db --format csv; echo $?
fuseplan db merge old.db new.db --db both.db -q >out
fuseplan compare both.db --before 2026-01-15; echo $?
fuseplan compare old.db --before 2026-01-15; echo $?
fuseplan compare old.db; echo $?
fuseplan compare old.db new.db --before 2026-01-15; echo $?
fuseplan compare old.db new.db old.db; echo $?
fuseplan compare old.db none.db; echo $?
fuseplan compare old.db --before soon; echo $?
