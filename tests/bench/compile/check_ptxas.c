#include "bench/bench_int.h"
#include "tests/suite.h"

#define SERIALISED                                                                                 \
    "wgmma.mma_async instructions are serialized due to insufficient register resources for the "  \
    "wgmma pipeline"
#define REGISTERS_IGNORED "'setmaxnreg' ignored to maintain minimum register requirements."

/* As the compilers print them. */
static const struct {
    const char *name, *log;
    struct resources found;
    bool serialises;
} logs[] = {
    {"nvcc 13.0, sm_80",
     "ptxas info    : 148 bytes gmem\n"
     "ptxas info    : Compiling entry function 'segment_10_11_ffn1_gemm' for 'sm_80'\n"
     "ptxas info    : Function properties for segment_10_11_ffn1_gemm\n"
     "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
     "ptxas info    : Used 244 registers, used 1 barriers, 16 bytes smem, 696 bytes cmem[0]\n"
     "ptxas info    : Compile time = 228.836 ms\n",
     {.registers = 244, .shared_static_bytes = 16},
     false},
    {"NVRTC 13.0, with spills",
     "ptxas info    : 0 bytes gmem\n"
     "ptxas info    : Compiling entry function 'spills' for 'sm_90a'\n"
     "ptxas info    : Function properties for spills\n"
     "ptxas         .     624 bytes stack frame, 656 bytes spill stores, 704 bytes spill loads\n"
     "ptxas info    : Used 32 registers, used 0 barriers, 624 bytes cumulative stack size\n"
     "ptxas info    : Compile time = 28.288 ms\n\n",
     {.registers = 32, .stack_bytes = 624, .spill_bytes = 656, .spill_load_bytes = 704},
     false},
    {"a function that is called",
     "ptxas info    : Compiling entry function 'caller' for 'sm_80'\n"
     "ptxas info    : Function properties for caller\n"
     "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
     "ptxas info    : Used 40 registers, 1024 bytes smem, 384 bytes cmem[0]\n"
     "ptxas info    : Function properties for _Z6calleef\n"
     "    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n",
     {.registers = 40,
      .shared_static_bytes = 1024,
      .stack_bytes = 16,
      .spill_bytes = 12,
      .spill_load_bytes = 20},
     false},
    {"serialised",
     "ptxas info    : (C7519) warpgroup.arrive is injected in around line 69 by compiler to allow "
     "use of registers in GMMA in function 'serial'\n"
     "ptxas info    : (C7511) Potential Performance Loss: " SERIALISED " in the function 'serial'\n"
     "ptxas info    : 0 bytes gmem\n"
     "ptxas info    : Used 30 registers, used 0 barriers, 400 bytes smem\n",
     {.registers = 30, .shared_static_bytes = 400, .compiler_warning = "C7511: " SERIALISED},
     true},
    {"a loss that leaves the products as they are",
     "ptxas info    : (C7507) Potential Performance Loss: " REGISTERS_IGNORED "\n",
     {.compiler_warning = "C7507: " REGISTERS_IGNORED},
     false},
    {"the worse of two, with no code",
     "ptxas info    : (C7507) Potential Performance Loss: " REGISTERS_IGNORED "\n"
     "ptxas info    : Potential Performance Loss: " SERIALISED "\n"
     "ptxas info    : (C7507) Potential Performance Loss: " REGISTERS_IGNORED "\n",
     {.compiler_warning = SERIALISED},
     true},
};

TEST_LOOP(logs_are_read, 0, ARRAY_LEN(logs))
{
    const struct resources *want = &logs[_i].found;
    struct resources r;
    memset(&r, 0xff, sizeof(r));
    ptxas_read(logs[_i].log, &r);
    ck_assert_int_eq(r.registers, want->registers);
    ck_assert_int_eq(r.shared_static_bytes, want->shared_static_bytes);
    ck_assert_int_eq(r.stack_bytes, want->stack_bytes);
    ck_assert_int_eq(r.spill_bytes, want->spill_bytes);
    ck_assert_int_eq(r.spill_load_bytes, want->spill_load_bytes);
    ck_assert_str_eq(r.compiler_warning, want->compiler_warning);
    ck_assert_int_eq(ptxas_serialises(&r), logs[_i].serialises);
}

SUITE("ptxas", NULL, NULL)
