# The kernels' text, embedded into the program; kernel_texts.c is the table of it.
# To add a file of kernels/: its name below, in a group named after its folder.
set(cpu_kernels abi.h attention.h blocks.h common.h handwritten_attention.h
  streaming_attention.h tokens.h vecmath.h)
set(cpu_program program.c threads.h)
set(cuda_kernels abi.h attention.cuh attention_wgmma.cuh attention_wgmma_copy.cuh
  attention_wgmma_join.cuh attention_wgmma_load.cuh attention_wgmma_q.cuh attention_wgmma_shape.cuh
  attention_wgmma_softmax.cuh attention_wgmma_store.cuh common.cuh gemm.cuh gemm_tma.cuh
  gemm_tma_copy.cuh gemm_tma_shape.cuh handwritten.cuh hopper.cuh mma.cuh
  tokens.cuh)
set(cuda_program inputs.cuh maps.cuh output.cuh program.cu)
set(cuda_library library.cuh)
set(both_programs kernels/arguments.h)
list(TRANSFORM cpu_kernels PREPEND kernels/cpu/)
list(TRANSFORM cpu_program PREPEND kernels/cpu/)
list(TRANSFORM cuda_kernels PREPEND kernels/cuda/)
list(TRANSFORM cuda_program PREPEND kernels/cuda/)
list(TRANSFORM cuda_library PREPEND kernels/cuda/)
embed_texts(codegen cpu_kernels cpu_program cuda_kernels cuda_program cuda_library
  both_programs)
