# A space of four plans; the sum of its segments is not known.
cat >small.space <<'END'
{"format":"fuseplan space","version":1,"workload":{"batch":1,"seq_len":8,"mask":"full","heads":2,"head_size":8,"ffn":64,"layers":1,"eps":1e-5,"dtype":"fp32","target":"cpu","lengths":null},"target":{"kind":"cpu","device":"d","uuid":"u","capability":"c","units":2,"driver":"r","compiler":"g","libraries":"l"},"protocol":"1","inputs":{"seed":0,"init":"uniform"},"space":[40000,40003],"counts":{"segments":1,"plans":4},"best":{"value":40002},"measured_utc":"2026-01-31T12:34:56.789Z"}
{"ops":[0,0],"handwritten":false,"us":7.5}
[40000,500,499,501]
[40001,400,399,401]
[40002,250,249,251]
[40003,300,299,301]
END
fuseplan replay small.space --strategy random,additive --budget 4 --seeds 3
fuseplan replay small.space --strategy random --budget 3 --seeds 1 --format json
fuseplan replay small.space --strategy random --budget 4 --seeds 2 --format csv | head -1
# Recorded in part: each row says so.
sed 's/40000,40003/40000,40010/' small.space >part.space
fuseplan replay part.space --strategy random --budget 4 --seeds 2
# Version 2 holds seconds: stage 1 takes 2 s, a plan 0.5; plan 40001 is within 3 % of the best.
cat >seconds.space <<'END'
{"format":"fuseplan space","version":2,"workload":{"batch":1,"seq_len":8,"mask":"full","heads":2,"head_size":8,"ffn":64,"layers":1,"eps":1e-5,"dtype":"fp32","target":"cpu","lengths":null},"target":{"kind":"cpu","device":"d","uuid":"u","capability":"c","units":2,"driver":"r","compiler":"g","libraries":"l"},"protocol":"1","inputs":{"seed":0,"init":"uniform"},"space":[40000,40003],"counts":{"attempts":1,"plans":4},"best":{"value":40002},"measured_utc":"2026-01-31T12:34:56.789Z"}
{"ops":[0,0],"handwritten":false,"implementation":"generated","schedule":"rows=8","us":7.5,"low_us":7.4,"high_us":7.6,"build_s":1,"verify_s":0.75,"time_s":0.25}
[40000,0.5,500,499,501]
[40001,0.5,255,254,256]
[40002,0.5,250,249,251]
[40003,0.5,300,299,301]
END
fuseplan replay seconds.space --strategy random --budget 4 --seeds 3 --format json
fuseplan replay seconds.space --strategy random --budget 4 --seeds 3 --no-segment-times
