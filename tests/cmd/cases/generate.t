=== generate again
$ small='-b 1 -s 4 -H 1 -W 4 -L 1 -m causal --target cpu -q'
$ generate() { fuseplan generate "$@" $small; echo "exit $?"; }
## What make built is replaced with the sources, and what has no successor goes.
$ generate 41115 -o g
exit 0
$ touch g/plan g/segment_00_00_qkv_gemm.o
$ generate 43690 -o g
exit 0
1$ ls g | grep -c '^segment_'; ls g | grep -e '^plan$' -e '\.o$'
15
## No kernel of a CPU reads e4m3.
$ generate 43690 --precision fp8 -o f
exit 1
! fuseplan generate: the cpu target has no kernels for qkv in e4m3; without --precision all GEMMs are in fp32
## The default plan: where nothing is expected of any, a usual one.
$ fuseplan explain default $small --format csv | tail -n +2 | cut -d , -f 1,2 | paste -s -d ' '
0,0 1,1 2,6 7,7 8,9 10,11 12,12 13,14
$ fuseplan generate default ${small% -q} -o default 2>&1 | head -n 1; rm -r default
fuseplan: the default plan is 41115 (attention, norms and activation fused)
## Its schedules are those for real tokens.
$ fuseplan export default --target cuda --arch sm_90a -b 32 -s 128 --avg-seq-len 27 -q -o real; ls real | grep layernorm; rm -r real
segment_gemm_bias_residual_layernorm_hopper_gemm_64x128.cu
## A file of the user's, and one that was changed, stop it.
$ echo mine | tee g/example g/libmine.a >g/notes; echo '/* mine */' >>g/plan_b1_s4.c; ls g >before
$ generate 41115 -o g
exit 2
! fuseplan generate: 'g' holds what fuseplan did not write or what was changed since: 'example', 'libmine.a', 'notes', 'plan_b1_s4.c'; name a new directory, or add --force to keep other files and replace changed ones
$ tail -n 1 g/plan_b1_s4.c; ls g | cmp - before
/* mine */
## --force keeps the one and replaces the other.
$ generate 41115 -o g --force
exit 0
$ cat g/notes g/example g/libmine.a; tail -n 1 g/plan_b1_s4.c; ls g | grep -c '^segment_'; rm -r g before
mine
mine
mine
};
8
$ generate 41115 -o -; ls
exit 2
! fuseplan generate: --output: standard output takes one file, and these are several; name a directory
=== generate arch
## Needs neither GPU nor compiler: what is compiled for is in the Makefile and the manifest.
$ gen() { fuseplan generate 5 -b 1 -s 4 -W 16 --target cuda -q -o g "$@"; echo $?; }
$ gen --arch sm_90a,sm_80,sm_80; grep NVCCFLAGS g/Makefile; grep -A 3 architectures g/manifest.json
0
NVCCFLAGS = -std=c++17 -O3 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a
LINK = $(NVCC) $(NVCCFLAGS)
	$(NVCC) $(NVCCFLAGS) $(addprefix -Xcompiler ,$(HIDDEN)) -c -o $@ $<
  "architectures": [
    "sm_80",
    "sm_90a"
  ],
$ gen --arch sm_86; grep NVCCFLAGS g/Makefile
0
NVCCFLAGS = -std=c++17 -O3 -gencode arch=compute_86,code=sm_86
LINK = $(NVCC) $(NVCCFLAGS)
	$(NVCC) $(NVCCFLAGS) $(addprefix -Xcompiler ,$(HIDDEN)) -c -o $@ $<
## Schedules run on all: wgmma is sm_90a's alone, and sm_86 has less shared memory than sm_80.
1$ for list in sm_90a sm_90a,sm_100 sm_90a,sm_120; do
>   fuseplan generate 41115 -b 1 -s 128 --target cuda -q -o l --arch $list; ls l | grep -c "hopper_gemm_.*cu$"
> done
4
0
0
## Attention of long lists takes tensor maps, too.
$ fuseplan generate 48920 -b 1 -s 4096 --target cuda -q -o long --arch sm_90a
$ jq -c '.segments[] | [.implementation, .launch.maps]' long/manifest.json | sort | uniq -c
      1 ["hopper_attention",true]
      4 ["hopper_gemm",true]
$ gen --target cpu --arch sm_80
2
! fuseplan generate: --arch: 'sm_80' names no processors, and the target is cpu; expected what -march of the compiler takes, such as x86-64-v3 or native, or add --target cuda for GPUs
2$ fuseplan bench 32773 -b 1 -s 4 --target cpu --arch x86-64-v3
! fuseplan bench: --arch names GPU architectures, and the target is cpu, which is measured with code for its own processor; leave --arch out, or add --target cuda
2$ fuseplan bench 32773 -b 1 -s 4 -W 16 --target cuda --arch sm_80,sm_90a
! fuseplan bench: --arch: 'sm_80,sm_90a' names several architectures; name one that the device runs
=== generate bad
2$ fuseplan generate 5 -b 1 -s 4 --target cpu
! fuseplan generate: no directory given; add -o DIR
$ ls
=== generate cuda
## Needs neither GPU nor compiler.
$ fuseplan generate 16380 -b 1 -s 4 -H 1 -W 16 --ffn 64 -L 1 -m causal --target cuda -t bf16 -q -o g
## Each file that another one includes is there, and each source is built.
$ (cd g; ls) >is; (cd g; grep -ho '#include "[^"]*"' *.c *.cu *.cuh *.h | cut -d'"' -f2) | sort -u | comm -13 is -
$ sed -n '/^static const struct plan_product/,/^};/p' g/plan_b1_s4.c; grep 'segment_[0-9_]*_[a-z0-9_]*(void)\|tensor_at' g/plan_b1_s4.c; grep -e archs -e dtype g/plans.c
static const struct plan_product segment_00_00_qkv_gemm_library_product = {&encoder_products, 0, 1, -1, 0, -1, 1,
    4, 16, 48, 4, 0};
void encoder_segment_01_12_qkv_bias_split_scores_mask_softmax_context_merge_heads_out_gemm_out_bias_residual_layernorm1_ffn1_gemm_ffn1_bias_gelu_ffn2_gemm(void);
void encoder_segment_13_14_ffn2_bias_residual_layernorm2(void);

static const struct plan_segment segments[] = {
    {.workspace_bytes = 33554432, .product = &segment_00_00_qkv_gemm_library_product, .e4m3 = {-1, -1}},
    {(const void *)encoder_segment_01_12_qkv_bias_split_scores_mask_softmax_context_merge_heads_out_gemm_out_bias_residual_layernorm1_ffn1_gemm_ffn1_bias_gelu_ffn2_gemm,
     128, 55296, true, false, false, 0, 0, {0}, 1, 34, 0, 0, {-1, -1, -1, -1}},
    {(const void *)encoder_segment_13_14_ffn2_bias_residual_layernorm2,
     128, 0, false, false, false, 0, 0, {0}, 1, 32, 0, 0, {-1, -1, -1, -1}},
};
void encoder_segment_01_12_qkv_bias_split_scores_mask_softmax_context_merge_heads_out_gemm_out_bias_residual_layernorm1_ffn1_gemm_ffn1_bias_gelu_ffn2_gemm(void);
void encoder_segment_13_14_ffn2_bias_residual_layernorm2(void);
    .tensor_at = {-1, 256, -1, -1, -1, -1, -1, 512, -1, 768, 1024, -1, 0, 1280, -1, -1, -1},
    .archs = "sm_80,sm_90a",
    .dtype = ENCODER_BF16,
$ sed -n '/^OBJECTS/,/^plan:/s/^  \(.*\)\.o.*/\1/p' g/Makefile | sort >objects; (cd g; ls *.c *.cu) | sed 's/\.[a-z]*$//' | sort | comm -3 - objects
$ grep -e target -e eps g/manifest.json
    "eps": 1e-5,
    "target": "cuda",
$ jq -c '.measured_on, .segments[1] | del(.function?)' g/manifest.json
null
{"ops":[1,12],"implementation":"generated","schedule":"tile=64x64 split=1 norm=barrier resident=1","flops":19072,"bytes":5696,"launch":{"threads":128,"shared_bytes":55296,"cooperative":true,"persistent":false,"at_once":false,"cluster":0,"maps":false,"tile_rows":0,"ordered":false,"tiles":1,"sync_words":34,"workspace_bytes":0},"resources":null}
## Sizes that the kernels do not have.
2$ fuseplan generate 32773 -b 1 -s 4 -W 72 --rope 100 --target cuda -o h
! fuseplan generate: the cuda target has no code for head size 72 with rotary embeddings; expected a multiple of 16 up to 256
$ ls
g
is
objects
=== generate files
$ fuseplan generate 41115 -b 1 -s 4 -H 1 -W 4 -L 1 -m causal --target cpu -q -o g/
$ ls
g
$ ls g | grep -v '\.h$'
Makefile
checks.c
device.c
given.c
launch.c
layers.c
library.c
manifest.json
model.c
plan_b1_s4.c
plans.c
program.c
segment_00_00_qkv_gemm.c
segment_01_01_qkv_bias_split.c
segment_02_06_scores_mask_softmax_context_merge_heads_handwritten.c
segment_07_07_out_gemm.c
segment_08_09_out_bias_residual_layernorm1.c
segment_10_11_ffn1_gemm_ffn1_bias_gelu.c
segment_12_12_ffn2_gemm.c
segment_13_14_ffn2_bias_residual_layernorm2.c
$ head -n 5 g/manifest.json
{
  "generator": "fuseplan",
  "version": "0.2.0",
  "value": 41115,
  "packed": false,
## A plan of more segments in its place.
$ fuseplan generate 43690 -b 1 -s 4 -H 1 -W 4 -L 1 -m causal --target cpu -o g
! fuseplan: segments run with default schedules: no times of this workload are stored; 'fuseplan search' finds faster ones
! fuseplan: wrote 47 files; 'make -C g && g/plan' builds and runs them
$ ls g | grep -c '^segment_'
15
=== export
## A folder for C programs.  Several sizes are one library.
$ small='-H 1 -W 4 -L 1 -m causal --target cpu'
$ fuseplan export 41115 -b 1 -s 4 $small -o lib
! fuseplan: segments run with default schedules: no times of this workload are stored; 'fuseplan search' finds faster ones
! fuseplan: wrote 52 files; 'make -C lib && lib/example' builds the library and runs its example
$ (cd lib; ls) >is; (cd lib; grep -ho '#include "[^"]*"' *.[ch] | cut -d'"' -f2) | sort -u | comm -13 is -
$ ls lib | grep -v '\.[ch]$'
CMakeLists.txt
Makefile
encoder.pc.in
encoder.py
manifest.json
$ head -n 12 lib/encoder.h
/* The layers of a BERT model as one call: y = layer[n-1](... layer[0](x)).
 *
 * Layer, with A = heads * head_size, D = hidden, F = ffn, and all matrices row-major:
 *
 *   qkv = x @ wqkv + bqkv                          columns: q, k, v; in each head by head
 *   c   = softmax(mask(q k^T / sqrt(head_size))) v
 *   h   = layernorm(x + c @ wo + bo) * gamma1 + beta1
 *   y   = layernorm(h + gelu(h @ w1 + b1) @ w2 + b2) * gamma2 + beta2
 *
 * x and y are (batch, seq_len, D), of the element type of encoder_describe().  PyTorch's
 * nn.Linear stores the transpose of each matrix.
 *
$ jq -c '.library, (.plans[] | [.value, .workload.seq_len, .measured_on, .measured_with, (.segments | length)])' lib/manifest.json
"encoder"
[41115,4,null,null,8]
## Whatever else the name would clash with, its functions do not.
$ fuseplan export 43690 -b 1 -s 4 $small -q --name bert -o bert
$ ls bert | grep bert; grep -c encoder bert/*.[ch] | grep -v ':0$'
bert.h
bert.pc.in
bert.py
bert/weights.h:1
bert/weights_families.c:28
bert/weights_names.c:1
## What is not ours stays, also by a name that some other output builds; what make built goes.
$ echo mine | tee lib/libmine.a lib/libmine.so lib/libmine.so.1 lib/libencoder.1 lib/plan >lib/notes
$ touch lib/libencoder.a lib/libencoder.so lib/libencoder.so.1 lib/example lib/library.o
2$ fuseplan export 41115 -b 1 -s 4 $small -q -o lib
! fuseplan export: 'lib' holds what fuseplan did not write or what was changed since: 'libencoder.1', 'libmine.a', 'libmine.so', 'libmine.so.1', 'notes', 'plan'; name a new directory, or add --force to keep other files and replace changed ones
$ fuseplan export 41115 -b 1 -s 4 $small -q -o lib --force
$ ls lib | grep -e '^lib.*\.[ao1]' -e '\.so' -e '^plan$' -e notes -e '^example$'
libencoder.1
libmine.a
libmine.so
libmine.so.1
notes
plan
2$ fuseplan export 41115 -b 1 -s 4 $small -q -o no --name Bert
! fuseplan export: --name: 'Bert' cannot begin the names of C functions; give a lower-case letter, then up to 39 lower-case letters, digits and '_'
## Nor is it the name of a file that the library has.
2$ fuseplan export 41115 -b 1 -s 4 $small -q -o no --name plan
! fuseplan export: --name: 'plan' is the name of a file that the library has already, 'plan.h'; give another name, such as 'plan_bert'
## Nor is it one that C, a header or another type has.
2$ fuseplan export 41115 -b 1 -s 4 $small -q -o no --name new
! fuseplan export: --name: 'new' is a word of C or C++; give another name, such as 'new_bert'
2$ fuseplan export 41115 -b 1 -s 4 $small -q -o no --name time
! fuseplan export: --name: 'time' is the name of a header that the library uses; give another name, such as 'time_bert'
2$ for name in run size module plan_mask; do fuseplan export 41115 -b 1 -s 4 $small -q -o no --name $name 2>&1; done
fuseplan export: --name: 'run' is the name of a type that the library uses; give another name, such as 'run_bert'
fuseplan export: --name: 'size' is the name of a type that the library uses; give another name, such as 'size_bert'
fuseplan export: --name: 'module' is the name of a type that the library uses; give another name, such as 'module_bert'
fuseplan export: --name: 'plan_mask' is the name of a type that the library uses; give another name, such as 'plan_mask_bert'
$ known_db k.db
3$ fuseplan export best --target cpu -b 1,2 -s 128 -m causal -q -o no --db k.db
! fuseplan export: batch 2, seq-len 128: nothing is stored in 'k.db' for b=2 s=128 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=causal on cpu; 'fuseplan search -b 2 -s 128 -m causal --target cpu --db k.db' measures it; known are '-b 1 -s 128 -m causal', '-b 2 -s 64 -m strided:t=8 -H 8'
$ fuseplan export best,default --target cpu -b 1,2 -s 128 -m causal -q -o either --db k.db
$ jq -c '.plans[] | [.workload.batch, .value, .measured_on]' either/manifest.json
[1,41115,"a processor"]
[2,41115,null]
$ fuseplan export best --target cpu -b 1 -s 128 -m causal -q -o best --db k.db
$ grep -A 1 workload best/plan_b1_s128.c
              .workload = "b=1 s=128 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=causal",
              .measured_on = "a processor"},
## That device is not here, so nothing says what a layer takes.
$ jq -c '.plans[] | [.measured_on, .measured_with, .us_per_layer]' best/manifest.json
["a processor","OpenBLAS",null]
$ ls
bert
best
either
is
k.db
lib
## Several sizes are one library: a plan each, a segment's source once.
$ fuseplan export 41115 -b 2,1 -s 8,4 $small -q -o sizes
$ ls sizes | grep -c '^segment_'; sed -n '/^const struct plan \*/,/^}/p' sizes/plans.c
8
const struct plan *const encoder_plans[] = {
    &encoder_plan_b1_s4,
    &encoder_plan_b1_s8,
    &encoder_plan_b2_s4,
    &encoder_plan_b2_s8,
};
$ jq -c '.plans[].workload | [.batch, .seq_len]' sizes/manifest.json
[1,4]
[1,8]
[2,4]
[2,8]
=== export build
## --build runs make, whose end counts, also where the program that started this one ignores the ends of children.
$ export='fuseplan export 41115 -b 1 -s 4 -H 1 -W 4 -L 1 -m causal --target cpu -q -o lib --build'
$ mkdir bin
$ cat >bin/make <<'END'
> #!/bin/sh
> echo "make $*" | sed 's/ -j[1-9][0-9]*$/ -jN/'
> exit "$CODE"
> END
$ chmod +x bin/make
$ PATH=$PWD/bin:$PATH
$ for CODE in 0 2; do
>   export CODE
>   timeout 60 $export; echo $?
>   timeout 60 env --ignore-signal=CHLD $export; echo $?
> done
0
0
1
1
! make -s -C lib -jN
! make -s -C lib -jN
! make -s -C lib -jN
! fuseplan export: --build: make failed in 'lib'; the folder is written, and what is above says what it lacks
! make -s -C lib -jN
! fuseplan export: --build: make failed in 'lib'; the folder is written, and what is above says what it lacks
$ CODE=0 ${export%%-q*} -o lib --build 2>&1 | tail -n 3
fuseplan: wrote 52 files; make builds them
make -s -C lib -jN
fuseplan: built the library; 'lib/example' runs its example
## Make ends with it.
$ printf '#!/bin/sh\nkill -TERM $PPID\nexec sleep 100\n' >bin/make
130$ timeout 60 $export
! fuseplan export: --build: interrupted in 'lib'; the folder is written
=== names of paths
## A name may have blanks, begin with a dash or mean something to a shell: what is printed can be
## copied, and no compiler takes the name for an option.
$ for dir in 'a b;c' -dash; do
>   fuseplan generate 41115 -b 1 -s 8 -H 1 -W 4 -L 1 --target cpu -o "$dir" 2>&1 | tail -n 1
> done
fuseplan: wrote 40 files; 'make -C 'a b;c' && 'a b;c'/plan' builds and runs them
fuseplan: wrote 40 files; 'make -C ./-dash && ./-dash/plan' builds and runs them
3$ FUSEPLAN_CACHE=-cache fuseplan search -b 1 -s 8 -H 1 -W 4 -L 1 --target cpu --time-limit 0.1 -q >found
$ echo "exit $?"
exit 0
$ ls -- ./-cache | head -n 1
binaries
=== output places
## The file has standard output for itself.
$ fuseplan mask causal -s 4 --npy m.npy >text; fuseplan mask causal -s 4 --npy - 2>said | cmp - m.npy; echo $?; cmp said text
0
$ fuseplan mask causal -s 4 --npy /dev/stdout 2>said >got; echo $?; cmp got m.npy; cmp said text
0
$ fuseplan mask causal -s 4 --npy - --svg - | cmp - /dev/null
! fuseplan mask: --svg: standard output takes one file, and another one goes there already
