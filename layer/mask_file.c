/* What an array from a file lacks to be a mask, and the line of Python that mends it. */
#include "layer/mask_int.h"

/* Which values an array has. */
struct values {
    bool zeros, ones,
        dropped;  /* dropped: far below 0, as additive masks have where a key is dropped */
    double other; /* the first that is none of these; NaN: none, or this one */
    bool has_other;
};

/* Additive masks have -inf, the least number of a type, or -10000. */
static struct values values_of(const struct npy *a)
{
    const double dropped_most = -1000;
    struct values v = {.other = NAN};
    int64_t count = npy_count(a);
    for (int64_t i = 0; i < count && !v.has_other; i++) {
        double value = npy_value(a, i);
        if (value == 0)
            v.zeros = true;
        else if (value == 1)
            v.ones = true;
        else if (value <= dropped_most)
            v.dropped = true;
        else
            v = (struct values){.other = value, .has_other = true};
    }
    return v;
}

static void add_type(const struct npy *a, struct buf *out)
{
    struct values v = values_of(a);
    buf_addf(out, "the array holds %s, expected bool or uint8; ", npy_type_name(a->type));
    if (v.has_other)
        buf_addf(
            out,
            "it has %g, and a mask has 0 and 1, or 0 and -inf: make it true where a key is kept",
            v.other);
    else if (v.dropped && v.ones)
        buf_adds(out, "it has both 1 and numbers far below 0: make it true where a key is kept");
    else if (v.dropped)
        buf_adds(out, "it is an additive mask, 0 where a key is kept: convert it with mask == 0");
    else if (v.ones)
        buf_adds(out, "it is 1 where a key is kept: convert it with mask.astype(bool)");
    else
        buf_adds(out,
                 "all of it is 0: if it is an additive mask, which keeps all keys then, convert it "
                 "with mask == 0, else with mask.astype(bool)");
}

/* What to do with a shape that is none of a mask.  Nothing if that is not known. */
static void add_advice(const struct npy *a, int64_t batch, int64_t seq_len, struct buf *out)
{
    const int64_t *shape = a->shape;
    int64_t columns = a->ndim > 0 ? shape[a->ndim - 1] : 0,
            rows = a->ndim > 1 ? shape[a->ndim - 2] : 1;
    int64_t first = a->ndim > 2 || (a->ndim == 2 && rows != columns) ? shape[0] : 1;
    bool batched = first == batch || first == 1;
    if (columns == seq_len && rows == seq_len && batched && a->ndim == 4)
        buf_addf(out, ": take mask[%s]%s", first == batch ? ":, 0" : "0, 0",
                 shape[1] > 1 ? ", one mask for all heads, if they have the same" : "");
    else if (columns == seq_len && rows == seq_len && first == 1)
        buf_adds(out, ": take mask[0]");
    else if (columns == seq_len && batched && npy_count(a) == first * seq_len)
        buf_addf(out,
                 ": it masks keys alone; give the number of real tokens by --lengths, or take "
                 "numpy.broadcast_to(mask.reshape(-1,1,%lld), (%lld,%lld,%lld))",
                 (long long)seq_len, (long long)batch, (long long)seq_len, (long long)seq_len);
    else if (rows == columns && columns > 0 && columns <= SEQ_LEN_MAX &&
             (a->ndim == 2 || (a->ndim == 3 && shape[0] == batch)))
        buf_addf(out, ": give -s %lld", (long long)columns);
    else if (a->ndim == 3 && rows == seq_len && columns == seq_len && first > 0)
        buf_addf(out, ": give -b %lld", (long long)first);
}

static void add_shape(const struct npy *a, int batch, int seq_len, struct buf *out)
{
    buf_adds(out, out->len > 0 ? "; " : "");
    buf_adds(out, "the array has shape (");
    for (int d = 0; d < a->ndim; d++)
        buf_addf(out, d == 0 ? "%lld" : ",%lld", (long long)a->shape[d]);
    buf_addf(out, "), expected (%d,%d) or (%d,%d,%d)", seq_len, seq_len, batch, seq_len, seq_len);
    add_advice(a, batch, seq_len, out);
}

int mask_file_check(const struct npy *a, int batch, int seq_len, struct status *st)
{
    bool batched = a->ndim == 3 && a->shape[0] == batch;
    bool fits = (a->ndim == 2 || batched) && a->shape[a->ndim - 2] == seq_len &&
                a->shape[a->ndim - 1] == seq_len;
    SCOPED_BUF wrong = BUF_INIT;
    if (a->type != NPY_BOOL && a->type != NPY_UINT8)
        add_type(a, &wrong);
    if (!fits)
        add_shape(a, batch, seq_len, &wrong);
    return wrong.len == 0 ? 0 : status_set(st, STATUS_USAGE, "%s", wrong.ptr);
}
