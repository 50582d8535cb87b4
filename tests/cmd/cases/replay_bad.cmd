fuseplan replay; echo $?
fuseplan replay nothing.ndjson; echo $?
head -c 100 /dev/zero >zeros.ndjson
fuseplan replay zeros.ndjson; echo $?
printf '%s\n' '{"format":"fuseplan results","version":1}' >empty.ndjson
fuseplan replay empty.ndjson; echo $?
fuseplan replay empty.ndjson --strategy guided,genetics; echo $?
fuseplan replay empty.ndjson --strategy ''; echo $?
fuseplan replay empty.ndjson --seeds 0; echo $?
fuseplan replay empty.ndjson --budget 0; echo $?
for noise in 0.05 0.05,0.05,0.05 0.05,-0.1 1.5,0 nan,0; do
  fuseplan replay empty.ndjson --noise $noise; echo $?
done
fuseplan search -b 1 -s 4 --strategy guided,random; echo $?
# One plan of one workload, and plans of two.
study() {
  echo '{"study":"'$1'","inputs":{"init":"uniform","seed":'$1'},"protocol":"1","created_utc":"2026-01-01T00:00:00.000Z","target":{"kind":"cpu","device":"d","uuid":"","capability":"","units":1,"driver":"","compiler":"","libraries":""},"workload":{"text":"b=1 s=8 h=2 w=8 f=64 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full","batch":1,"seq_len":8,"mask":"full","heads":2,"head_size":8,"ffn":64,"layers":1,"eps":1e-05,"dtype":"fp32","lengths":"full"}}'
  echo '{"study":"'$1'","trial":"plan","value":32768,"choices":["0-14 generated x=1"],"status":"ok","stored_utc":"2026-01-01T00:00:00.000Z","median_ms":1,"ci_low_ms":1,"ci_high_ms":1,"sample_count":0,"layers_timed":0}'
}
(cat empty.ndjson; study 1) >one.ndjson
(cat one.ndjson; study 2) >two.ndjson
fuseplan replay one.ndjson; echo $?
fuseplan replay one.ndjson --space 40000..40001; echo $?
fuseplan replay one.ndjson --budget 1 --baseline 3,best; echo $?
fuseplan replay two.ndjson; echo $?
head -c -8 one.ndjson >cut.ndjson
fuseplan replay one.ndjson cut.ndjson --budget 1; echo $?
gzip -c one.ndjson >packed.gz
fuseplan replay packed.gz; echo $?
fuseplan replay one.ndjson --budget 1 --seeds 1 --strategy random --format csv; echo $?
