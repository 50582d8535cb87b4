# Results move as text and between databases; the later of two stays, in any order.
cat >old.txt <<'END'
{"format":"fuseplan results","version":1}
{"study":"1234567890abcdef","inputs":{"init":"uniform","seed":0},"protocol":"2","created_utc":"2026-01-01T00:00:00.000Z","target":{"kind":"cpu","device":"a processor","uuid":"1","capability":"avx2","units":2,"driver":"Linux 6.1","compiler":"gcc 12","libraries":"OpenBLAS"},"workload":{"text":"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=sliding:w=2","batch":1,"seq_len":8,"mask":"sliding:w=2","heads":1,"head_size":4,"ffn":16,"layers":1,"eps":1e-05,"dtype":"fp32","lengths":"full"}}
{"study":"1234567890abcdef","trial":"plan","value":41115,"status":"ok","stored_utc":"2026-01-01T00:00:00.000Z","median_ms":2,"ci_low_ms":1.75,"ci_high_ms":2.25,"sample_count":6,"layers_timed":1,"relative_error":0.0,"build_s":0.5,"verify_s":0.25,"time_s":0.125,"choices":["0 generated rows=8","1 generated rows=8","2-6 generated rows=8","7 generated rows=8","8-9 generated rows=8","10-11 generated rows=8","12 generated rows=8","13-14 generated rows=8"]}
{"study":"1234567890abcdef","trial":"plan","value":43690,"status":"ok","stored_utc":"2026-01-01T00:00:01.000Z","median_ms":4,"ci_low_ms":3.5,"ci_high_ms":4.5,"sample_count":6,"layers_timed":1,"relative_error":0.0,"build_s":0.5,"verify_s":0.25,"time_s":0.125,"choices":["0 generated rows=8","1 generated rows=8","2 generated rows=8","3 generated rows=8","4 generated rows=8","5 generated rows=8","6 generated rows=8","7 generated rows=8","8 generated rows=8","9 generated rows=8","10 generated rows=8","11 generated rows=8","12 generated rows=8","13 generated rows=8","14 generated rows=8"]}
END
sed '/"value":41115/s/"stored_utc":"2026-01-01/"stored_utc":"2026-02-01/;s/"median_ms":2,"ci_low_ms":1.75,"ci_high_ms":2.25/"median_ms":3,"ci_low_ms":2.5,"ci_high_ms":3.5/' old.txt >new.txt
fuseplan db import old.txt --db old.db
fuseplan db import - --db new.db <new.txt
fuseplan db merge old.db new.db --db a.db
fuseplan db merge new.db old.db --db b.db
fuseplan db export --db a.db -o a.txt
fuseplan db export --db b.db | diff a.txt - && echo same
fuseplan db import a.txt --db a.db --format csv
fuseplan db list --db a.db
fuseplan db check --db a.db
# The database that is read is not written over.
fuseplan db export --db a.db -o a.db; echo $?
fuseplan report --db a.db -o a.db; echo $?
fuseplan search -b 1 -s 8 --target cpu --db a.db --events ./a.db; echo $?
FUSEPLAN_DB=a.db fuseplan bench 41115 -b 1 -s 8 -H 1 -W 4 -L 1 --target cpu --trace a.db; echo $?
fuseplan train --data old.txt --db a.db --events old.txt; echo $?
fuseplan db check --db a.db
# A mistyped name is an error of the command line.
fuseplan compare a.db none.db; echo $?
fuseplan db merge none.db --db a.db; echo $?
# A page goes to standard output, too.
fuseplan report --db a.db -o - | grep -c '</html>'
