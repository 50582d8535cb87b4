# What is forgotten; a dry run changes nothing.
cat >old.txt <<'END'
{"format":"fuseplan results","version":1}
{"study":"1234567890abcdef","inputs":{"init":"uniform","seed":0},"protocol":"2","created_utc":"2026-01-01T00:00:00.000Z","target":{"kind":"cpu","device":"a processor","uuid":"1","capability":"avx2","units":2,"driver":"Linux 6.1","compiler":"gcc 12","libraries":"OpenBLAS"},"workload":{"text":"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=sliding:w=2","batch":1,"seq_len":8,"mask":"sliding:w=2","heads":1,"head_size":4,"ffn":16,"layers":1,"eps":1e-05,"dtype":"fp32","lengths":"full"}}
{"study":"1234567890abcdef","trial":"plan","value":41115,"status":"ok","stored_utc":"2026-01-01T00:00:00.000Z","median_ms":2,"ci_low_ms":1.75,"ci_high_ms":2.25,"sample_count":6,"layers_timed":1,"relative_error":0.0,"build_s":0.5,"verify_s":0.25,"time_s":0.125,"choices":["0 generated rows=8","1 generated rows=8","2-6 generated rows=8","7 generated rows=8","8-9 generated rows=8","10-11 generated rows=8","12 generated rows=8","13-14 generated rows=8"]}
{"study":"1234567890abcdef","trial":"plan","value":43690,"status":"ok","stored_utc":"2026-01-01T00:00:01.000Z","median_ms":4,"ci_low_ms":3.5,"ci_high_ms":4.5,"sample_count":6,"layers_timed":1,"relative_error":0.0,"build_s":0.5,"verify_s":0.25,"time_s":0.125,"choices":["0 generated rows=8","1 generated rows=8","2 generated rows=8","3 generated rows=8","4 generated rows=8","5 generated rows=8","6 generated rows=8","7 generated rows=8","8 generated rows=8","9 generated rows=8","10 generated rows=8","11 generated rows=8","12 generated rows=8","13 generated rows=8","14 generated rows=8"]}
END
sed 's/"protocol":"2"/"protocol":"1"/;s/1234567890abcdef/fedcba0987654321/' old.txt | cat old.txt - >both.txt
fuseplan db import both.txt --db a.db -q
w='-b 1 -s 8 -m sliding:w=2 -H 1 -W 4 -L 1 --target cpu'
fuseplan db forget --db a.db; echo $?
fuseplan db forget -b 1 --db a.db; echo $?
fuseplan db forget $w --db none.db; echo $?
fuseplan db forget $w -L 2 --db a.db; echo $?
fuseplan db forget --failed --target cpu --db a.db; echo $?
fuseplan db forget $w --dry-run --db a.db
fuseplan db list --db a.db --format csv | cut -d, -f1,2,8,12
fuseplan db forget $w --older-protocol --db a.db --format json
fuseplan db export --db a.db | wc -l
# Each option counts by itself: --target and --init without a workload too, and --older-protocol without the device.
sed '/"value":43690/{
  s/"status":"ok"/"status":"failed","reason_code":"compile","reason":"no"/
  s/"median_ms":4,"ci_low_ms":3.5,"ci_high_ms":4.5,"sample_count":6/"sample_count":0/
}' old.txt >failed.txt
sed 's/"kind":"cpu"/"kind":"cuda"/;s/1234567890abcdef/1234567890abcde0/' failed.txt >cuda.txt
sed 's/"init":"uniform"/"init":"wide"/;s/1234567890abcdef/1234567890abcde1/' failed.txt >wide.txt
fuseplan db import failed.txt cuda.txt wide.txt --db c.db -q
for what in '--failed --target cuda' '--failed --target cpu' '--failed --init wide' "$w --init uniform" \
  '--older-protocol --target cuda' '--older-protocol --init wide --target cpu'; do
  echo "$what:"
  fuseplan db forget $what --dry-run --db c.db --format csv -q
done
fuseplan db forget --target cuda --init wide --db c.db; echo $?
# Of inputs drawn by another seed.
sed 's/"seed":0/"seed":7/;s/1234567890abcdef/1234567890abcde2/' old.txt >seed.txt
fuseplan db import old.txt seed.txt --db s.db -q
fuseplan db forget $w --seed 7 --db s.db --format csv -q
fuseplan db export --db s.db | grep -o '"seed":.'
fuseplan db forget --seed 7 --db s.db; echo $?
