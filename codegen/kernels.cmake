# The kernels' text, embedded so that an installed fuseplan needs no source tree: embed.S pulls in
# each file's bytes, embed.c is the table of them, kernel_list.h names them for both.
# To add a file of kernels/: its name below, in a group named after its folder.
set(cpu_kernels abi.h attention.h blocks.h common.h handwritten_attention.h
  streaming_attention.h tokens.h vecmath.h)
set(cpu_program program.c)
set(cuda_kernels abi.h attention.cuh attention_wgmma.cuh common.cuh gemm.cuh gemm_wgmma.cuh
  handwritten.cuh hopper.cuh mma.cuh tokens.cuh)
set(cuda_program inputs.cuh output.cuh program.cu)
set(cuda_library library.cuh)

set(list "/* Made by codegen/kernels.cmake. */")
set(depends "")
foreach(group cpu_kernels cpu_program cuda_kernels cuda_program cuda_library)
  string(TOUPPER ${group} macro)
  string(REGEX REPLACE "_.*" "" folder ${group})
  string(APPEND list "\n#define ${macro}(X)")
  foreach(file IN LISTS ${group})
    string(MAKE_C_IDENTIFIER ${folder}_${file} symbol)
    set(path ${PROJECT_SOURCE_DIR}/kernels/${folder}/${file})
    string(APPEND list " \\\n    X(${symbol}, \"${file}\", \"${path}\")")
    list(APPEND depends ${path})
  endforeach()
endforeach()
file(CONFIGURE OUTPUT kernel_list.h CONTENT "${list}\n" @ONLY)
