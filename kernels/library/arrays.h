/* NumPy's files of fp32, format version 1.0: magic, the header's length, the header, the data. */
#ifndef ARRAYS_H
#define ARRAYS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAY_DIMS = 3, ARRAY_HEADER = 118, ARRAY_WHY = 128 };
#define ARRAY_MAGIC "\x93NUMPY\1\0"

/* Returns 0, or -1 with errno. */
static inline int array_write(FILE *out, const int shape[ARRAY_DIMS], const float *values)
{
    char text[100];
    size_t n = (size_t)shape[0] * (size_t)shape[1] * (size_t)shape[2];
    snprintf(text, sizeof(text),
             "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }", shape[0],
             shape[1], shape[2]);
    return fwrite(ARRAY_MAGIC "\x76\0", 1, 10, out) == 10 &&
                   fprintf(out, "%-117s\n", text) == ARRAY_HEADER &&
                   fwrite(values, sizeof(*values), n, out) == n
               ? 0
               : -1;
}

/* Returns the values, which the caller frees; null if the file is no such array: why[] says it. */
static inline float *array_read(FILE *in, int shape[ARRAY_DIMS], char why[ARRAY_WHY])
{
    snprintf(why, ARRAY_WHY, "is no NumPy array (B,S,D) of fp32 in C order");
    unsigned char start[10];
    char header[4096] = "";
    if (fread(start, 1, sizeof(start), in) != sizeof(start) || memcmp(start, ARRAY_MAGIC, 8) != 0)
        return NULL;
    size_t len = start[8] + 256u * start[9];
    if (len >= sizeof(header) || fread(header, 1, len, in) != len ||
        strstr(header, "'<f4'") == NULL || strstr(header, "'fortran_order': False") == NULL)
        return NULL;
    const char *at = strstr(header, "'shape': (");
    int end = 0; /* of all of it: an array of four dimensions begins like one of three */
    if (at == NULL ||
        sscanf(at, "'shape': (%d, %d, %d)%n", &shape[0], &shape[1], &shape[2], &end) !=
            ARRAY_DIMS ||
        end == 0)
        return NULL;
    size_t n = 1;
    for (int i = 0; i < ARRAY_DIMS; i++) {
        if (shape[i] < 1 || n > ((size_t)1 << 40) / (size_t)shape[i])
            return NULL;
        n *= (size_t)shape[i];
    }
    const size_t bytes = n * sizeof(float);
    float *values = malloc(bytes);
    if (values == NULL) {
        snprintf(why, ARRAY_WHY, "takes %zu bytes, for which there is no memory", bytes);
        return NULL;
    }
    const size_t found = fread(values, 1, bytes, in);
    if (found == bytes && getc(in) == EOF)
        return values;
    snprintf(why, ARRAY_WHY, "is %s: its shape takes %zu bytes of data, found %s%zu",
             found < bytes ? "truncated" : "too long", bytes, found < bytes ? "" : "more than ",
             found);
    free(values);
    return NULL;
}

#endif
