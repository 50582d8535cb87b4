#include "codegen/codegen_int.h"

bool schedule_next(const struct impl *impl, struct schedule *sch)
{
    for (int k = impl->knob_count - 1; k >= 0; k--) {
        if (++sch->pick[k] < impl->knobs[k].count)
            return true;
        sch->pick[k] = 0;
    }
    return false;
}

void knob_label(const struct knob *knob, int pick, struct buf *out)
{
    if (knob->labels[pick] != NULL)
        buf_adds(out, knob->labels[pick]);
    else
        buf_addf(out, "%d", knob->values[pick]);
}

void schedule_text(const struct impl *impl, const struct schedule *s, struct buf *out)
{
    for (int k = 0; k < impl->knob_count; k++) {
        buf_addf(out, "%s%s=", k > 0 ? " " : "", impl->knobs[k].name);
        knob_label(&impl->knobs[k], s->pick[k], out);
    }
    if (s->precision != 0)
        buf_adds(out, impl->knob_count > 0 ? " e4m3=" : "e4m3=");
    gemms_text(s->precision, "+", out);
}

/* Reads names of GEMMs with '+' between; 0 if there is another. */
static unsigned precision_find(const char *text, size_t len)
{
    unsigned found = 0;
    for (const char *end = text + len; text <= end;) {
        size_t name = strcspn(text, "+ ");
        int g = 0;
        while (g < GEMM_COUNT &&
               (strlen(gemm_names[g]) != name || memcmp(gemm_names[g], text, name) != 0))
            g++;
        if (g == GEMM_COUNT)
            return 0;
        found |= 1u << g;
        text += name + 1;
    }
    return found;
}

static int pick_find(const struct knob *knob, const char *text, size_t len)
{
    SCOPED_BUF label = BUF_INIT;
    int found = -1;
    for (int i = 0; i < knob->count && found < 0; i++) {
        buf_reset(&label);
        knob_label(knob, i, &label);
        if (label.len == len && memcmp(label.ptr, text, len) == 0)
            found = i;
    }
    return found;
}

int knob_find(const struct impl *impl, const char *name, size_t len)
{
    for (int k = 0; k < impl->knob_count; k++)
        if (strlen(impl->knobs[k].name) == len && memcmp(impl->knobs[k].name, name, len) == 0)
            return k;
    return -1;
}

int schedule_parse(const struct impl *impl, const char *text, struct schedule *out,
                   struct status *st)
{
    *out = (struct schedule){0};
    struct schedule parsed = {0};
    for (const char *p = text; *p != '\0';) {
        size_t len = strcspn(p, " "), name = strcspn(p, "= ");
        int knob = knob_find(impl, p, name);
        if (strncmp(p, "e4m3=", name + 1) == 0 && impl->e4m3 != 0) {
            parsed.precision = (uint8_t)precision_find(p + name + 1, len - name - 1);
            if (parsed.precision == 0)
                return status_set(st, STATUS_USAGE, "'%.*s' names no GEMMs", (int)len, p);
            p += len + (p[len] == ' ');
            continue;
        }
        if (name == len || knob < 0)
            return status_set(st, STATUS_USAGE, "'%.*s' is not KNOB=VALUE with a knob of %s",
                              (int)len, p, impl->name);
        int pick = pick_find(&impl->knobs[knob], p + name + 1, len - name - 1);
        if (pick < 0)
            return status_set(st, STATUS_USAGE, "knob %s of %s has no value '%.*s'",
                              impl->knobs[knob].name, impl->name, (int)(len - name - 1),
                              p + name + 1);
        parsed.pick[knob] = (int8_t)pick;
        p += len + (p[len] == ' ');
    }
    *out = parsed;
    return 0;
}
