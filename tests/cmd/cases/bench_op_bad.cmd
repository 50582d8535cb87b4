# Command lines and files that `bench --op attention` refuses.
refused() {
  fuseplan bench "$@" 2>&1
  echo $?
}
refused 41115 --op attention -b 1 -s 8
refused --op atention -b 1 -s 8
refused --op attention -b 1 -s 8 --baseline none
refused --op attention -b 1 -s 8 --trace x
refused --op attention -b 1 -s 8 --fail-above 2
refused --op attention -b 1 -s 8 --retry-failed
refused --op attention -b 1 -s 8 --force
refused --op attention -b 1,2 -s 8 --dump d
refused --op attention -b 1 -s 8,70000 --format json
refused 41115 -b 1 -s 8 --peers p.csv
refused --op attention -b 1,2 -s 8 --peers missing.csv

file() {
  printf "$1" >p.csv
  refused --op attention -b 1,2 -s 8 --peers p.csv --format json
}
names='variant,dtype,batch,seq_len,mask,us\n'
file ''
file 'variant,dtype,batch,seq_len,mask\n'
file 'us,variant,dtype,batch,seq_len,mask,us\n'
file "${names}a,fp32,1,8,full,x\n"
file "${names}a,fp32,1,8,full,-3\n"
file "${names}a,fp32,1,8,full\n"
file "${names}a,fp32,1,8,longformer:g=2,w=1,4\n"
file "${names}a,fp32,1,8,cusal,4\n"
file "${names}a,fp31,1,8,full,4\n"
file "${names}a,fp32,1,8,full,4\nb,fp32,1,8,full,4\na,fp32,1,8,full,5\n"
rm p.csv
ls
