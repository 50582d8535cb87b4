#include "search/space_int.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

/* A space of 16640 plans without failures takes 0.3 MB packed and 1 MB unpacked. */
enum { PACKED_MAX = 16 << 20, UNPACKED_MAX = 64 << 20 };

static void init(struct recorded_space *s)
{
    *s = (struct recorded_space){.best = -1};
    for (int i = 0; i < SLOT_COUNT; i++)
        s->segments.ms[i] = NAN;
    for (int i = 0; i < PLAN_KEYS; i++)
        s->at[i] = -1;
}

int recorded_space_unpack(const struct buf *packed, struct recorded_space *out, struct status *st)
{
    struct buf text;
    buf_init(&text);
    init(out);
    int result = 0;
    if (packed->len > 0 && packed->ptr[0] == '{') /* it is not packed */
        buf_add(&text, packed->ptr, packed->len);
    else
        result = gzip_unpack(packed->ptr, packed->len, UNPACKED_MAX, &text, st);
    if (result == 0)
        result = space_parse(text.ptr, out, st);
    if (result != 0)
        recorded_space_release(out);
    buf_release(&text);
    return result;
}

int recorded_space_read(const char *path, struct recorded_space *out, struct status *st)
{
    struct buf packed;
    buf_init(&packed);
    init(out);
    const char *what;
    int result = file_read_text(path, PACKED_MAX, &packed, st);
    enum file_kind kind = file_kind(packed.ptr, packed.len, &what);
    if (result == 0 && (kind == FILE_DATABASE || kind == FILE_RESULTS))
        result = status_set(st, STATUS_USAGE, "'%s' is no recorded space: %s", path, what);
    else if (result == 0 && recorded_space_unpack(&packed, out, st) != 0)
        result =
            status_prefix(st, "'%s' is no recorded space that can be read; export it again", path);
    buf_release(&packed);
    return result;
}

void recorded_space_release(struct recorded_space *s)
{
    json_decref(s->header);
    json_decref(s->lines);
    free(s->workload);
    free(s->attempts);
    free(s->seconds);
    free(s->plans);
    free(s->outcomes);
    init(s);
}

bool recorded_space_is_whole(const struct recorded_space *s)
{
    struct plan *space = mem_alloc(PLAN_SPACE, sizeof(*space));
    bool whole = s->count == plan_space(s->lo, s->hi, space);
    free(space);
    return whole;
}

/* ---- the evaluator --------------------------------------------------------------------------- */

static int measure(void *ctx, struct plan p, struct outcome *out, struct status *st)
{
    const struct recorded_space *s = ctx;
    int i = s->at[plan_key(p)];
    if (i < 0)
        return status_set(st, STATUS_NOT_FOUND, "plan %u was not recorded", plan_value(p));
    *out = s->outcomes[i];
    return 0;
}

static const struct segment_times *segments(void *ctx)
{
    return &((const struct recorded_space *)ctx)->segments;
}

bool recorded_space_fails(const struct recorded_space *s, struct plan p)
{
    if (s->at[plan_key(p)] < 0)
        return true;
    int slots[OP_COUNT];
    int count = plan_slots(p, slots);
    for (int i = 0; i < count; i++)
        if (s->failed[slots[i]])
            return true;
    return false;
}

static bool fails(void *ctx, struct plan p)
{
    return recorded_space_fails(ctx, p);
}

static double now(void *ctx)
{
    (void)ctx;
    return 0;
}

struct evaluator recorded_space_evaluator(const struct recorded_space *s)
{
    return (struct evaluator){.measure = measure,
                              .segments = segments,
                              .fails = fails,
                              .now = now,
                              .ctx = (void *)(uintptr_t)s}; /* which they only read */
}
