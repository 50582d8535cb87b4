# The kernels' text, embedded into the program; kernel_texts.c is the table of it.
# To add a file of kernels/: its name below, in a group named after its use.
set(cpu_kernels abi.h attention.h blocks.h common.h handwritten_attention.h
  streaming_attention.h tokens.h vecmath.h)
set(cpu_library device.c launch.c segment.h)
set(cpu_host host.h)
set(cuda_kernels abi.h attention.cuh attention.h attention_rows.cuh attention_scores.cuh common.cuh
  gemm.cuh gemm.h handwritten.cuh heads.cuh hopper.cuh
  hopper_attention.cuh hopper_attention.h hopper_attention_compute.cuh
  hopper_attention_copy.cuh hopper_attention_finish.cuh hopper_attention_joined.cuh
  hopper_attention_load.cuh hopper_attention_softmax.cuh hopper_attention_tiles.cuh
  hopper_attention_work.cuh hopper_gemm.cuh hopper_gemm.h hopper_gemm_compute.cuh
  hopper_gemm_cooperative.cuh hopper_gemm_finish.cuh hopper_gemm_load.cuh hopper_gemm_moments.cuh
  hopper_gemm_norm.cuh hopper_gemm_norm_swap.cuh hopper_gemm_pingpong.cuh hopper_gemm_split.cuh
  hopper_gemm_pairs.cuh hopper_gemm_store.cuh hopper_gemm_work.cuh mma.cuh tokens.cuh wgmma.cuh)
set(cuda_library device.c e4m3.c embed.cu graphs.c joined.h launch.c launch.h lengths.cu maps.c mask.c memory.c
  normalise.cu quantise.cu rows.c segment.h)
set(cuda_products products.c)
set(cuda_host host.h)
set(cuda_stamps stamps.h)
set(library_files checks.c encoder.h given.c layers.c lengths.h library.c model.c plan.h)
set(library_host arrays.h elements.h)
set(library_program arguments.h program.c program.mk)
set(library_export CMakeLists.txt Makefile encoder.pc.in example.c safetensors.c safetensors.h
  safetensors_int.h safetensors_open.c weights.c weights.h weights_families.c weights_int.h weights_names.c
  weights_read.c weights_tensors.c)
foreach(folder cpu cuda library)
  foreach(group kernels library products host stamps files program export)
    list(TRANSFORM ${folder}_${group} PREPEND kernels/${folder}/)
  endforeach()
endforeach()
list(APPEND library_files layer/rotations.h)
list(APPEND cuda_library layer/e4m3.h)
list(APPEND library_export python/fuseplan/encoder.py)
list(APPEND cpu_host base/threads.h) # cpu_info.c counts cores by it, too
list(APPEND cpu_kernels kernels/activations.h)
list(APPEND cuda_kernels kernels/activations.h)
embed_texts(codegen cpu_kernels cpu_library cpu_host cuda_kernels cuda_library cuda_products
  cuda_host cuda_stamps library_files library_host library_program library_export)
