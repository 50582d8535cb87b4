#include "layer/mask_int.h"

static uint64_t *row_of(const struct mask *m, int64_t matrix, int64_t i)
{
    return m->bits + (matrix * m->seq_len + i) * m->row_words;
}

static void allocate(struct mask *m, int matrices, int seq_len)
{
    *m = (struct mask){.seq_len = seq_len, .matrices = matrices, .row_words = (seq_len + 63) / 64};
    m->bits =
        mem_alloc((size_t)matrices * (size_t)seq_len, (size_t)m->row_words * sizeof(*m->bits));
}

static int64_t count_empty_rows(const struct mask *m)
{
    int64_t empty = 0;
    for (int64_t r = 0; r < (int64_t)m->matrices * m->seq_len; r++) {
        const uint64_t *row = m->bits + r * m->row_words;
        int word = 0;
        while (word < m->row_words && row[word] == 0)
            word++;
        empty += word == m->row_words;
    }
    return empty;
}

/* Packs one matrix of bytes, byte (i,j) at data[i*stride_i + j*stride_j].  It goes through tiles of
 * 64x64, so that C order and Fortran order both read whole cache lines. */
static void pack_matrix(const uint8_t *data, int64_t stride_i, int64_t stride_j, int64_t matrix,
                        struct mask *m)
{
    int s = m->seq_len;
    for (int i0 = 0; i0 < s; i0 += 64)
        for (int j0 = 0; j0 < s; j0 += 64)
            for (int i = i0; i < s && i < i0 + 64; i++) {
                uint64_t bits = 0;
                for (int j = j0; j < s && j < j0 + 64; j++)
                    bits |= (uint64_t)(data[i * stride_i + j * stride_j] != 0) << (j - j0);
                row_of(m, matrix, i)[j0 / 64] = bits;
            }
}

static int build_from_file(struct mask_spec *spec, int batch, int seq_len, const struct buf *npy,
                           struct mask *out, struct status *st)
{
    struct npy a;
    if (npy_parse(npy->ptr, npy->len, &a, st) != 0 || mask_file_check(&a, batch, seq_len, st) != 0)
        return status_prefix(st, "attention mask file '%s'", spec->path);

    int matrices = a.ndim == 3 ? batch : 1;
    int64_t s = seq_len, count = matrices;
    int64_t stride_matrix = a.fortran_order ? 1 : s * s;
    int64_t stride_i = a.fortran_order ? count : s, stride_j = a.fortran_order ? count * s : 1;
    allocate(out, matrices, seq_len);
    for (int64_t matrix = 0; matrix < matrices; matrix++)
        pack_matrix((const uint8_t *)a.data + matrix * stride_matrix, stride_i, stride_j, matrix,
                    out);
    return 0;
}

/* Hashes shape and kept bits, so that the same mask in another file has the same hash. */
static void hash_content(const struct mask *m, char out[HASH_TEXT_SIZE])
{
    char text[64 + HASH_TEXT_SIZE];
    hash_text(m->bits, mask_bytes(m), out);
    int len = snprintf(text, sizeof(text), "%d %d %s", m->matrices, m->seq_len, out);
    hash_text(text, (size_t)len, out);
}

int mask_build(struct mask_spec *spec, int batch, int seq_len, const struct buf *npy,
               struct mask *out, struct status *st)
{
    *out = (struct mask){.bits = NULL};
    if (spec->kind->row == NULL) {
        if (build_from_file(spec, batch, seq_len, npy, out, st) != 0)
            return -1;
        hash_content(out, spec->content_hash);
    } else {
        allocate(out, 1, seq_len);
        for (int i = 0; i < seq_len; i++)
            spec->kind->row(row_of(out, 0, i), i, seq_len, spec->param);
    }
    out->empty_rows = count_empty_rows(out);
    return 0;
}

/* Whether a mask of one matrix is that of a resolved spec. */
static bool is_of(const struct mask *m, const struct mask_spec *spec, uint64_t *row)
{
    for (int i = 0; i < m->seq_len; i++) {
        memset(row, 0, (size_t)m->row_words * sizeof(*row));
        spec->kind->row(row, i, m->seq_len, spec->param);
        if (memcmp(row, row_of(m, 0, i), (size_t)m->row_words * sizeof(*row)) != 0)
            return false;
    }
    return true;
}

bool mask_name(const struct mask *m, struct mask_spec *spec)
{
    SCOPED uint64_t *row = mem_alloc((size_t)m->row_words, sizeof(*row));
    bool found = false;
    for (int k = 0; k < mask_kind_count() && m->matrices == 1 && !found; k++) {
        struct mask_spec named = {.kind = NULL};
        found = mask_kinds[k].row != NULL &&
                mask_parse(mask_kinds[k].name, &named, STATUS_IGNORED) == 0 &&
                mask_resolve(&named, m->seq_len, STATUS_IGNORED) == 0 && is_of(m, &named, row);
        if (found) {
            mask_spec_release(spec);
            *spec = named;
        }
    }
    return found;
}

void mask_release(struct mask *m)
{
    if (m == NULL)
        return;
    if (!m->borrowed)
        free(m->bits);
    *m = (struct mask){.bits = NULL};
}

size_t mask_bytes(const struct mask *m)
{
    return (size_t)m->matrices * (size_t)m->seq_len * (size_t)m->row_words * sizeof(*m->bits);
}

bool mask_keep(const struct mask *m, int batch_row, int i, int j)
{
    return (row_of(m, m->matrices == 1 ? 0 : batch_row, i)[j / 64] >> j % 64 & 1) != 0;
}

/* Bits first..end-1 of a row, as far as they are in a word. */
static uint64_t bits_of(int first, int end, int word)
{
    const int lo = first > 64 * word ? first - 64 * word : 0, hi = end - 64 * word;
    if (lo >= 64 || hi <= lo)
        return 0;
    return (~(uint64_t)0 << lo) & (hi < 64 ? ((uint64_t)1 << hi) - 1 : ~(uint64_t)0);
}

bool mask_band(const struct mask *m, int *left, int *right)
{
    const int last = m->seq_len - 1;
    *left = *right = 0;
    if (m->matrices != 1)
        return false;
    while (*right < last && mask_keep(m, 0, 0, *right + 1))
        ++*right;
    while (*left < last && mask_keep(m, 0, last, last - *left - 1))
        ++*left;
    for (int i = 0; i <= last; i++) {
        const int first = i > *left ? i - *left : 0,
                  end = i + *right < last ? i + *right + 1 : last + 1;
        for (int word = 0; word < m->row_words; word++)
            if (row_of(m, 0, i)[word] != bits_of(first, end, word))
                return false;
    }
    return true;
}
