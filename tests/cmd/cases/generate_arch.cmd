# Needs neither GPU nor compiler: what is compiled for is in the Makefile and the manifest.
gen() { fuseplan generate 5 -b 1 -s 4 -W 16 --target cuda -q -o g "$@"; echo $?; }
gen --arch sm_90a,sm_80,sm_80; grep NVCCFLAGS g/Makefile; grep -A 3 architectures g/manifest.json
gen --arch sm_86; grep NVCCFLAGS g/Makefile
# Schedules run on all: wgmma is sm_90a's alone, and sm_86 has less shared memory than sm_80.
for list in sm_90a sm_90a,sm_100 sm_90a,sm_120; do
  fuseplan generate 41115 -b 1 -s 128 --target cuda -q -o l --arch $list; ls l | grep -c "hopper_gemm_.*cu$"
done
gen --arch sm_75
gen --arch sm_90
gen --arch sm_80,,sm_90a
gen --arch 80
gen --arch ''
gen --target cpu --arch sm_80
fuseplan bench 32773 -b 1 -s 4 -W 16 --target cuda --arch sm_80,sm_90a; echo $?
