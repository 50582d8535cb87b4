#include "cmd/cmd.h"

json_t *plan_fused_json(struct plan p)
{
    struct segment s[OP_COUNT];
    int n = plan_segments(p, s), len = 0;
    char text[8 * OP_COUNT] = "";
    for (int i = 0; i < n; i++)
        if (s[i].first < s[i].last)
            len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%d-%d", len > 0 ? " " : "",
                            s[i].first, s[i].last);
    return json_string(text);
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

json_t *schedule_json(const struct choice *c)
{
    SCOPED_BUF text = BUF_INIT;
    schedule_text(c->impl, &c->schedule, &text);
    return json_string(text.ptr);
}
