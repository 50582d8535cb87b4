#include "cmd/cmd.h"

void plan_fused_text(struct plan p, struct buf *out)
{
    struct segment s[OP_COUNT];
    int n = plan_segments(p, s);
    const char *gap = "";
    for (int i = 0; i < n; i++)
        if (s[i].first < s[i].last) {
            buf_addf(out, "%s%d-%d", gap, s[i].first, s[i].last);
            gap = " ";
        }
}

char *segment_text(struct segment s, char out[12])
{
    if (s.first < s.last)
        snprintf(out, 12, "%d-%d", s.first, s.last);
    else
        snprintf(out, 12, "%d", s.first);
    return out;
}

json_t *plan_segments_json(struct plan p)
{
    struct segment s[OP_COUNT];
    int n = plan_segments(p, s);
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_pack("[ii]", s[i].first, s[i].last));
    return list;
}
