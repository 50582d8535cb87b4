#include "cmd/cmd.h"

static const struct column columns[] = {
    {"state", "state", 0}, {"subject", "what", 0}, {"found", "found", 0},
    {"required", NULL, 0}, {"advice", NULL, 0},
};

static int run(const struct options *o, struct status *st)
{
    (void)st;
    static const char *const states[] = {
        [ENV_OK] = "ok", [ENV_WARNING] = "warning", [ENV_MISSING] = "missing"};
    SCOPED_BY(env_list_release) struct env_list list;
    struct output out;
    int code = EXIT_SUCCESS;
    env_check_all(&list);
    output_begin(&out, o->format, columns, ARRAY_LEN(columns));
    for (int i = 0; i < list.count; i++) {
        const struct env_check *c = &list.rows[i];
        output_row(&out,
                   json_pack("{ss ss ss sb ss}", "state", states[c->state], "subject", c->subject,
                             "found", c->found, "required", c->required, "advice", c->advice));
        if (c->required && c->state == ENV_MISSING)
            code = EXIT_FAILURE;
    }
    output_end(&out);
    for (int i = 0; i < list.count && o->format == FORMAT_TABLE; i++)
        if (list.rows[i].advice[0] != '\0')
            printf("\n%s: %s\n", list.rows[i].subject, list.rows[i].advice);
    return code;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .operands = "",
    .summary = "Check what this machine has, and say what to do about what it lacks",
    .options = OPTS_COMMON,
    .about = "Exits 1 if something is missing that every measurement needs.",
    .examples = "fuseplan doctor\n"
                "fuseplan doctor --format json",
    .run = run,
};
