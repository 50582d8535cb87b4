/* Which plan a library of several sizes takes: export.sh gives it (1,4), (2,4), (1,8), (2,8). */
#include "sizes.h"

#include <stdio.h>

int main(void)
{
    static const struct {
        int batch, seq_len, takes_batch, takes_seq_len;
    } rows[] = {{1, 4, 1, 4}, {2, 4, 2, 4}, {1, 8, 1, 8}, {2, 8, 2, 8},
                {1, 3, 1, 4}, {1, 5, 1, 8}, {2, 1, 2, 4}, {2, 7, 2, 8}};
    int failures = sizes_find(3, 4) != -1 || sizes_find(1, 9) != -1;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct sizes_plan *p = sizes_plan_at(sizes_find(rows[i].batch, rows[i].seq_len));
        if (p == NULL || p->batch != rows[i].takes_batch || p->seq_len != rows[i].takes_seq_len) {
            printf("(%d,%d) takes another plan\n", rows[i].batch, rows[i].seq_len);
            failures++;
        }
    }
    return failures;
}
