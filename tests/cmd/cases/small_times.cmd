# Times below 1 ms have five decimals in tables; commands on a page name the inputs that are not the usual ones.
cat >small.txt <<'END'
{"format":"fuseplan results","version":1}
{"study":"1234567890abcdef","inputs":{"init":"wide","seed":0},"protocol":"7","created_utc":"2026-01-01T00:00:00.000Z","target":{"kind":"cpu","device":"a processor","uuid":"1","capability":"avx2","units":2,"driver":"Linux 6.1","compiler":"gcc 12","libraries":"OpenBLAS"},"workload":{"text":"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=sliding:w=2","batch":1,"seq_len":8,"mask":"sliding:w=2","heads":1,"head_size":4,"ffn":16,"layers":1,"eps":1e-05,"dtype":"fp32","lengths":"full"}}
{"study":"1234567890abcdef","trial":"plan","value":41115,"status":"ok","stored_utc":"2026-01-01T00:00:00.000Z","median_ms":0.01234,"ci_low_ms":0.01231,"ci_high_ms":0.0124,"sample_count":6,"layers_timed":1,"relative_error":0.0,"build_s":0.5,"verify_s":0.25,"time_s":0.125,"choices":["0 generated rows=8","1 generated rows=8","2-6 generated rows=8","7 generated rows=8","8-9 generated rows=8","10-11 generated rows=8","12 generated rows=8","13-14 generated rows=8"]}
END
fuseplan db import small.txt --db a.db -q
fuseplan db list --db a.db
fuseplan query -b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1 --target cpu --init wide --db a.db --top 1 -q | tail -n 2
fuseplan report --db a.db -o page.html -q; grep -o '"options":"[^"]*"' page.html
# Names in other encodings than UTF-8 are shown, too.
cp small.txt "$(printf 'caf\351.txt')"
fuseplan db import "$(printf 'caf\351.txt')" --db b.db
