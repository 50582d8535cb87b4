#include "base/base.h"

enum { WORD_MAX = 32 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours count one
 * each.  Both words are at most WORD_MAX long. */
static int distance(const char *a, const char *b)
{
    int d[WORD_MAX + 1][WORD_MAX + 1];
    int rows = (int)strlen(a), columns = (int)strlen(b);
    for (int i = 0; i <= rows; i++)
        d[i][0] = i;
    for (int j = 0; j <= columns; j++)
        d[0][j] = j;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++) {
            d[i][j] = smaller(smaller(d[i - 1][j], d[i][j - 1]) + 1,
                              d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = smaller(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[rows][columns];
}

const char *nearest_word(const char *word, const char *const *list, int n)
{
    size_t len = strlen(word);
    if (len == 0 || len > WORD_MAX)
        return NULL;
    const char *best = NULL;
    int limit = 1 + ((int)len + 1) / 3;
    for (int i = 0; i < n; i++) {
        int edits = strlen(list[i]) <= WORD_MAX ? distance(word, list[i]) : limit;
        if (edits < limit) {
            limit = edits;
            best = list[i];
        }
    }
    return best;
}
