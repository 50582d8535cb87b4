=== sizes
2$ fuseplan query -b 0 -s 4
! fuseplan query: --batch: '0' is not a size; give a whole number from 1 to 65536
2$ fuseplan query -b 60000 -s 4096
! fuseplan query: batch * seq_len is 245760000: the workload would take 295.5 TiB of memory; give at most 16777216
2$ fuseplan query -b 1 -s 4 --dtype fp16 --target cpu
! fuseplan query: the cpu target has no element type fp16; expected fp32
2$ fuseplan query -b 1 -s 4 --target tpu
! fuseplan query: unknown target 'tpu'; expected cpu, cuda or cuda:N
2$ fuseplan query -b 1 -s 4 --target cpu:1
! fuseplan query: target 'cpu:1' has no device numbers; expected 'cpu'
2$ fuseplan query -b 1
! fuseplan query: the batch size or the sequence length is not given; add -s N
2$ fuseplan query
! fuseplan query: the batch size or the sequence length is not given; add -b N and -s N
## A range where one value is wanted; sizes beyond any; values that are not canonical.
2$ fuseplan query -b 1 -s 99999999999
! fuseplan query: --seq-len: 99999999999 is too large; give at most 65536
1$ FUSEPLAN_CC=/none/cc fuseplan search --target cpu -b 1 -s 4 --space 24420..24420
! fuseplan: 24420 names the same plan as 8347, which is searched
! fuseplan search: FUSEPLAN_CC: no compiler '/none/cc' found; install a C compiler with OpenMP and OpenBLAS: apt install gcc libc6-dev libopenblas-openmp-dev, or name another with --compiler or FUSEPLAN_CC
1$ FUSEPLAN_CC=/none/cc fuseplan search --target cpu -b 1 -s 4 --space 24400..24500
! fuseplan: the 101 values of --space name 101 plans, which are searched by their canonical values
! fuseplan search: FUSEPLAN_CC: no compiler '/none/cc' found; install a C compiler with OpenMP and OpenBLAS: apt install gcc libc6-dev libopenblas-openmp-dev, or name another with --compiler or FUSEPLAN_CC
1$ FUSEPLAN_CC=/none/cc fuseplan search --target cpu -b 1 -s 4 --space 41115..41115
! fuseplan search: FUSEPLAN_CC: no compiler '/none/cc' found; install a C compiler with OpenMP and OpenBLAS: apt install gcc libc6-dev libopenblas-openmp-dev, or name another with --compiler or FUSEPLAN_CC
=== preset
## A preset sets what no option sets, wherever the option stands.
$ workload() { fuseplan query --target cpu -b 1 -s 4 --db k.db "$@" 2>&1 | grep -o 'h=.* dtype'; }
$ known_db k.db
$ workload --preset bert-large
h=16 w=64 f=4096 l=24 eps=1e-12 dtype
$ workload --preset bert-large -L 3 --eps 1e-5
h=16 w=64 f=4096 l=3 eps=1e-05 dtype
$ workload -H 2 --ffn 8 --preset minilm-l6
h=2 w=32 f=8 l=6 eps=1e-12 dtype
## Heads may have other columns than tokens, which --hidden gives; the same number is no chain of its own.
$ options() { fuseplan query --target cpu -b 1 -s 4 --db k.db "$@" 2>&1 | sed -n 's/.*\(h=.*\) on cpu.*/\1/p'; }
$ options --preset flan-t5-small
h=6 w=64 f=1024 l=8 eps=1e-06 dtype=fp32 lengths=full mask=full chain=pre+rms+gelu_tanh+gate+bias+hidden hidden=512
$ options -H 3 -W 16 --hidden 64
h=3 w=16 f=256 l=12 eps=1e-05 dtype=fp32 lengths=full mask=full chain=hidden hidden=64
$ options -H 3 -W 16 --hidden 48
h=3 w=16 f=192 l=12 eps=1e-05 dtype=fp32 lengths=full mask=full
$ fuseplan query -b 1 -s 4 --preset bert-bse 2>&1 | sed 's/bert-small.*/.../'
fuseplan query: unknown --preset 'bert-bse'; did you mean 'bert-base'? expected bert-tiny, bert-mini, ...
=== chain
## Functions of a layer are part of the workload, and a preset has some; known workloads are named by options.
$ workload() { fuseplan query --target cpu -b 1 -s 4 --db k.db "$@" 2>&1 | sed -n 's/.*\(mask=.*\) on cpu.*/\1/p'; }
$ known_db k.db
$ workload
mask=full
$ workload --preset vit-base
mask=full chain=pre
$ workload --preset gpt2
mask=causal chain=pre+gelu_tanh
$ workload --preset gpt2 --activation silu --gate --norm post -m full
mask=full chain=silu+gate
## What a preset has can be taken away.
$ workload --preset jina-v2-base --gate=none --score-bias=none
mask=full
$ workload --preset nomic-v1.5 --rope none --activation gelu
mask=full chain=gate
2$ fuseplan query -b 1 -s 4 --gate=off
! fuseplan query: unknown --gate 'off'; expected none
2$ fuseplan query -b 1 -s 4 --rope off
! fuseplan query: --rope: 'off' is not a number; give one from 1 to 1e+12
$ workload --norm-kind rms --score-bias --rope 500
mask=full chain=rms+rope+bias rope=500
$ workload --preset gte-base --rope 500000:2
mask=full chain=gate+rope rope=500000:2
## Layers may be of two kinds; one layer is of one kind.
$ options() { fuseplan query --target cpu -b 1 -s 4 --db k.db "$@" 2>&1 | sed -n 's/.*\( l=.*\) on cpu.*/\1/p'; }
$ options --preset modernbert-base
 l=22 eps=1e-05 dtype=fp32 lengths=full mask=full chain=pre+gate+rope rope=160000 local=sliding:w=64 local_rope=10000 every=3
$ options --preset modernbert-base --local-mask none --rope 20000
 l=22 eps=1e-05 dtype=fp32 lengths=full mask=full chain=pre+gate+rope rope=20000
$ options --preset modernbert-base -L 1 --gate=none
 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full chain=pre+rope rope=160000
$ options --preset modernbert-base --rope none --global-every 2
 l=22 eps=1e-05 dtype=fp32 lengths=full mask=full chain=pre+gate local=sliding:w=64 every=2
$ options -L 4 -m causal --local-mask sliding_causal --global-every 2 --rope 50
 l=4 eps=1e-05 dtype=fp32 lengths=full mask=causal chain=rope rope=50 local=sliding_causal:w=2 local_rope=50 every=2
2$ fuseplan query -b 1 -s 4 --local-mask causal
! fuseplan query: --local-mask without the layers that are global; add --global-every N
2$ fuseplan query -b 1 -s 4 --local-mask causal --global-every 3 --local-rope 50
! fuseplan query: --local-rope without --rope; layers rotate all or none
2$ fuseplan query -b 1 -s 4 --global-every 3
! fuseplan query: --global-every says what local layers are, and there are none; add --local-mask MASK
=== model
## A model's config.json says what a preset says; options beside it win.
$ workload() { fuseplan query --target cpu -b 1 -s 4 --db k.db "$@" 2>&1 | sed -n 's/.*\(h=.*\) on cpu.*/\1/p'; }
$ known_db k.db
$ echo '{"model_type": "gpt2", "n_embd": 96, "n_head": 6, "n_layer": 3, "n_inner": null, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}' >config.json
$ workload --model config.json
h=6 w=16 f=384 l=3 eps=1e-05 dtype=fp32 lengths=full mask=causal chain=pre+gelu_tanh
$ mkdir model && cp config.json model && workload --model model
h=6 w=16 f=384 l=3 eps=1e-05 dtype=fp32 lengths=full mask=causal chain=pre+gelu_tanh
$ workload -L 1 --activation relu -m full --model config.json
h=6 w=16 f=384 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full chain=pre+relu
2$ fuseplan query -b 1 -s 4 --model config.json --preset gpt2
! fuseplan query: --preset and --model are given at once; give one of them
## A file with several models names them; a part may leave out what its model has by default.
$ echo '{"model_type": "siglip", "text_config": {"model_type": "siglip_text_model"}, "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "num_attention_heads": 16, "intermediate_size": 4304, "num_hidden_layers": 27}}' >siglip.json
$ workload --model siglip.json:vision_config
h=16 w=72 f=4304 l=27 eps=1e-06 dtype=fp32 lengths=full mask=full chain=pre+gelu_tanh
$ workload --model siglip.json:text_config
h=12 w=64 f=3072 l=12 eps=1e-06 dtype=fp32 lengths=full mask=full chain=pre+gelu_tanh
$ fuseplan query -b 1 -s 4 --model siglip.json 2>&1 | grep -o "its model_type.*; known"
its model_type 'siglip' is of several models; choose one by ':vision_config' or ':text_config' behind the name; known
2$ fuseplan query -b 1 -s 4 --model siglip.json:audio_config
! fuseplan query: --model: 'siglip.json': it has no object 'audio_config'
2$ fuseplan query -b 1 -s 4 --model none.json
! fuseplan query: --model: there is no 'none.json'; name the directory of a HuggingFace model, which has config.json and model.safetensors, or a config.json; 'hf download NAME config.json model.safetensors --local-dir DIR' fetches one
$ mkdir empty && mv siglip.json empty/config.json && workload --model empty:text_config
h=12 w=64 f=3072 l=12 eps=1e-06 dtype=fp32 lengths=full mask=full chain=pre+gelu_tanh
## Weights beside it are those of bench.
2$ echo none >model/model.safetensors; fuseplan bench 41115 --target cpu -b 1 -s 4 --model model
! fuseplan: the layers have the weights of 'model/model.safetensors', and their times are not stored
! fuseplan bench: cannot read the weights 'model/model.safetensors': the file is shorter than the length of a header: 8 bytes expected, found 5
2$ fuseplan bench 41115 --target cpu -b 1 -s 4 --model model --weights none
! fuseplan bench: cannot read the weights 'none': No such file or directory
2$ fuseplan bench 41115 --target cpu -b 1 -s 4 --model model --fail-above 2
! fuseplan bench: --fail-above compares with stored times, and those of trained weights are not stored; give --model the config.json for drawn ones
2$ fuseplan bench 41115 --target cpu -b 1 -s 4 --model model/config.json --prefix bert
! fuseplan bench: --prefix chooses among the models in a file of weights; give --weights, or --model with a directory that has weights
## Heads of T5 may have other columns than tokens.
$ echo '{"model_type": "t5", "d_model": 512, "num_heads": 6, "d_kv": 64, "num_layers": 8, "d_ff": 1024, "layer_norm_epsilon": 1e-6, "feed_forward_proj": "gated-gelu"}' >t5.json
$ workload --model t5.json
h=6 w=64 f=1024 l=8 eps=1e-06 dtype=fp32 lengths=full mask=full chain=pre+rms+gelu_tanh+gate+bias+hidden hidden=512
$ sed -i 's/"t5"/"mt5"/; s/, "feed_forward_proj": "gated-gelu"//' t5.json
$ workload --model t5.json
h=6 w=64 f=1024 l=8 eps=1e-06 dtype=fp32 lengths=full mask=full chain=pre+rms+gelu_tanh+gate+bias+hidden hidden=512
=== threads
## What the user's shell says of threads does not change what a plan runs with.
$ fuseplan doctor | grep ' threads ' >plain
$ OMP_PROC_BIND=true OMP_NUM_THREADS=1 fuseplan doctor | grep ' threads ' | cmp - plain
=== each
## Lists of batch sizes and sequence lengths mean each of them.
$ known_db k.db
$ export FUSEPLAN_DB=k.db
$ q='fuseplan query --target cpu -m causal -q'
$ $q -b 1 -s 128,128 --format json | head -n 1
{
$ $q -b 1,2 -s 128,64 --format csv | cut -d, -f1-5
batch,seq_len,value,fused,handwritten
1,128,41115,2-6 8-9 10-11 13-14,true
! fuseplan query: batch 1, seq-len 64: nothing is stored in 'k.db' for b=1 s=64 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=causal on cpu; 'fuseplan search -b 1 -s 64 -m causal --target cpu' measures it; known are '-b 1 -s 128 -m causal', '-b 2 -s 64 -m strided:t=8 -H 8'
! fuseplan query: batch 2, seq-len 128: nothing is stored in 'k.db' for b=2 s=128 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=causal on cpu; 'fuseplan search -b 2 -s 128 -m causal --target cpu' measures it; known are '-b 1 -s 128 -m causal', '-b 2 -s 64 -m strided:t=8 -H 8'
! fuseplan query: batch 2, seq-len 64: nothing is stored in 'k.db' for b=2 s=64 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=causal on cpu; 'fuseplan search -b 2 -s 64 -m causal --target cpu' measures it; known are '-b 1 -s 128 -m causal', '-b 2 -s 64 -m strided:t=8 -H 8'
$ $q -b 1,4 -s 128 | grep 'batch\|best plan'
batch 1, seq-len 128
best plan    41115 (attention, norms and activation fused)
batch 4, seq-len 128
batch  seq-len   plan  us/layer  x unfused 43690  x fused 41115  verdict
! fuseplan query: batch 4, seq-len 128: nothing is stored in 'k.db' for b=4 s=128 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=causal on cpu; 'fuseplan search -b 4 -s 128 -m causal --target cpu' measures it; known are '-b 1 -s 128 -m causal', '-b 2 -s 64 -m strided:t=8 -H 8'
$ $q -b 1,4 -s 128 2>&1 | tail -n 3
batch  seq-len   plan  us/layer  x unfused 43690  x fused 41115  verdict
    1      128  41115    9000.0             1.09           1.00  a baseline
    4      128      -         -                -              -  nothing known
$ $q -b 1,1 -s 128 --format markdown --top 2
| rank | value | fused ops | ms | low | high | us/layer | compared | x best |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| 1 | 41115 | 2-6 8-9 10-11 13-14 | 108.000 | 106.920 | 109.080 | 9000.0 | yes | 1.000 |
| 2 | 32769 | 0-13 | 108.500 | 107.415 | 109.585 | 9041.7 | no | 0.995 |

| batch | seq-len | plan | us/layer | x unfused 43690 | x fused 41115 | verdict |
| --- | --- | --- | --- | --- | --- | --- |
| 1 | 128 | 41115 | 9000.0 | 1.09 | 1.00 | a baseline |
2$ fuseplan doctor --format markdown
! fuseplan doctor: --format markdown is of search, query, bench and ship, not of doctor
2$ fuseplan generate 5 -b 1,2 -s 8 -o d
! fuseplan generate: --batch: 2 sizes are given, and generate takes one
2$ fuseplan bench 5 -b 1 -s 8,16 --dump d
! fuseplan bench: --dump writes one workload, and 2 are asked for; give one batch size and one sequence length
## The mask of the second is refused before the first is measured.
$ fuseplan mask causal -s 8 --npy m.npy -q >/dev/null
2$ fuseplan search -b 1 -s 8,16 -m file:m.npy --target cpu
! fuseplan search: batch 1, seq-len 16: attention mask file 'm.npy': the array has shape (8,8), expected (16,16) or (1,16,16): give -s 8
## Notes say of which size they are; what holds for all is said once.
$ fuseplan export 5 -b 1,2 -s 16 -H 1 -W 4 -L 1 --target cpu -o g
! fuseplan: 5 names the same plan as 32773
! fuseplan: batch 1, seq-len 16:
! fuseplan: segments run with default schedules: no times of this workload are stored; 'fuseplan search' finds faster ones
! fuseplan: batch 2, seq-len 16:
! fuseplan: segments run with default schedules: no times of this workload are stored; 'fuseplan search' finds faster ones
! fuseplan: wrote 49 files; 'make -C g && g/example' builds the library and runs its example
