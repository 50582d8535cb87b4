/* Damage to a database, as the bytes of an input or of a random stream say. */
#ifndef FUSEPLAN_TESTS_DAMAGE_H
#define FUSEPLAN_TESTS_DAMAGE_H

#include "tests/stress/fuzz/fuzz.h"

/* Makes the tables of a database take any value in any column, as another program's might. */
void damage_schema(const char *path);

/* Changes values, and now and then a table, until the bytes end or `most` changes are made.
 * Checksums of pages are those of the changed pages. */
void damage_rows(const char *path, struct fuzz_bytes *in, int most);

/* Changes bytes of a database in memory.  seal: nothing about a page says that it was changed. */
void damage_bytes(struct buf *file, struct fuzz_bytes *in, int most, bool seal);

#endif
