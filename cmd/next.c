/* Commands for people to go on with. */
#include "cmd/search_int.h"

#include <errno.h>
#include <string.h>

void options_words(const struct options *o, option_bits set, struct buf *out)
{
    for (int id = 0; id < OPTION_COUNT; id++) {
        const struct option_info *info = option_info((enum option_id)id);
        if ((o->given & set & (option_bits)1 << id) == 0)
            continue;
        if (info->letter != '\0')
            buf_addf(out, " -%c", info->letter);
        else
            buf_addf(out, " --%s", info->name);
        if (o->texts[id] == NULL && (id == OPTION_BATCH || id == OPTION_SEQ_LEN)) {
            buf_addf(out, " %d", id == OPTION_BATCH ? o->batch : o->seq_len);
        } else if (o->texts[id] != NULL) {
            buf_adds(out, option_needs_argument(info) ? " " : "=");
            buf_add_word(out, o->texts[id]);
        }
    }
}

void options_command(const struct options *o, const char *command, option_bits set, struct buf *out)
{
    buf_add_word(out, program_invocation_name);
    buf_addf(out, " %s", command);
    options_words(o, set, out);
}

void next_print(const struct options *o, const struct next_step *steps, int count)
{
    bool part = o->texts[OPTION_BATCH] == NULL; /* of a list of sizes, which ends with its own */
    if (!output_is_terminal(o->format) || options_has(o, OPT(QUIET)) || part)
        return;
    puts("\nnext:");
    for (int i = 0; i < count; i++) {
        struct buf command;
        buf_init(&command);
        options_command(o, steps[i].command, steps[i].options, &command);
        printf("  %s%s\n", command.ptr, steps[i].more);
        buf_release(&command);
    }
}
