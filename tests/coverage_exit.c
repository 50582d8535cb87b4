/* What a child process has run counts too: gcov writes its counters at exit(), not at _exit(). */
#include <stdlib.h>

void __gcov_dump(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}
