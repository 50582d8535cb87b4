printf '%s\n' '{"format":"fuseplan space","version":3}' >new.space
printf '%s\n' '{"format":"fuseplan space"' >cut.space
head -c 100 /dev/zero >zeros.space
fuseplan replay; echo $?
fuseplan replay nothing.space; echo $?
fuseplan replay new.space; echo $?
fuseplan replay cut.space; echo $?
fuseplan replay zeros.space; echo $?
fuseplan replay new.space --strategy guided,genetics; echo $?
fuseplan replay new.space --seeds 0; echo $?
fuseplan replay new.space --budget 0; echo $?
fuseplan replay new.space --noise 0.05; echo $?
fuseplan replay new.space --noise 0.05,-0.1; echo $?
fuseplan replay new.space --noise 1.5,0; echo $?
fuseplan search -b 1 -s 4 --strategy guided,random; echo $?
cat >small.space <<'END'
{"format":"fuseplan space","version":1,"workload":{"batch":1,"seq_len":8,"mask":"full","heads":2,"head_size":8,"ffn":64,"layers":1,"eps":1e-5,"dtype":"fp32","target":"cpu","lengths":null},"target":{"kind":"cpu","device":"d","uuid":"u","capability":"c","units":2,"driver":"r","compiler":"g","libraries":"l"},"protocol":"1","inputs":{"seed":0,"init":"uniform"},"space":[40000,40001],"counts":{"segments":0,"plans":2},"best":{"value":40000},"measured_utc":"2026-01-31T12:34:56.789Z"}
[40000,500,499,501]
[40001,400,399,401]
END
fuseplan replay small.space; echo $?
sed 's/"cpu"/"tpu"/g' small.space >tpu.space
fuseplan replay tpu.space --budget 2; echo $?
# Version 2, cut after its attempt.
cat >two.space <<'END'
{"format":"fuseplan space","version":2,"workload":{"batch":1,"seq_len":8,"mask":"full","heads":2,"head_size":8,"ffn":64,"layers":1,"eps":1e-5,"dtype":"fp32","target":"cpu","lengths":null},"target":{"kind":"cpu","device":"d","uuid":"u","capability":"c","units":2,"driver":"r","compiler":"g","libraries":"l"},"protocol":"1","inputs":{"seed":0,"init":"uniform"},"space":[40000,40003],"counts":{"attempts":1,"plans":1},"best":{"value":40000},"measured_utc":"2026-01-31T12:34:56.789Z"}
{"ops":[0,0],"handwritten":false,"implementation":"generated","schedule":"rows=8","us":7.5,"build_s":1,"verify_s":0.75,"time_s":0.25}
END
fuseplan replay two.space --budget 1; echo $?
sed 's/"version":2/"version":1/' two.space >one.space
fuseplan replay one.space --budget 1; echo $?
fuseplan db import-space two.space --db none.db; echo $?
# Files cut: packed, of version 1 after and within a plan's line.
gzip -cn small.space | head -c 100 >packed.space.gz
fuseplan replay packed.space.gz; echo $?
head -n 2 small.space >after.space
fuseplan replay after.space; echo $?
head -c -8 small.space >within.space
fuseplan replay within.space; echo $?
sed 's/"version":1,//' small.space >nameless.space
fuseplan replay nameless.space; echo $?
# Recorded in part; its best plan lies beyond what was recorded, or did not run.
sed 's/40000,40001/40000,40010/' small.space >part.space
fuseplan replay part.space --budget 3; echo $?
sed 's/"value":40000/"value":40007/' part.space >beyond.space
fuseplan replay beyond.space --budget 2; echo $?
sed 's/40000,500,499,501/40000,null,"launch: no"/' small.space >failed.space
fuseplan replay failed.space --budget 1; echo $?
fuseplan replay small.space --budget 1 --baseline 3,best; echo $?
fuseplan replay small.space --noise 0.05,0.05,0.05; echo $?
fuseplan replay small.space --noise nan,0; echo $?
fuseplan replay small.space --noise 0,1.01; echo $?
fuseplan replay small.space --seeds -1; echo $?
fuseplan replay small.space --strategy ''; echo $?
# Wherever a bad file stands, it is refused before the first replay, which would take many minutes.
{
  sed -n '1s/40000,40001/40960,41983/; 1s/"plans":2/"plans":1024/; 1s/"value":40000/"value":40960/p' small.space
  seq 40960 41983 | sed 's/.*/[&,500,499,501]/'
} >good.space
for files in 'good.space cut.space' 'cut.space good.space' 'good.space nothing.space' 'good.space small.space'; do
  timeout 60 fuseplan replay $files --seeds 10000; echo $?
done
