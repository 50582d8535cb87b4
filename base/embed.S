/* The text of each embedded file at its symbol, with a NUL behind it: base/embed.cmake. */
#include "embedded.h"

    .section .rodata
#define X(symbol, name, path) \
    .global symbol; \
symbol: .incbin path; \
    .byte 0;
EMBEDDED(X)
#undef X

    .section .note.GNU-stack, "", %progbits
