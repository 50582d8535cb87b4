/* Options as a command line has them. */
#include "cmd/cmd.h"

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
