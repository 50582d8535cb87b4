#include "bench/worker/worker_int.h"

#include <unistd.h>

void worker_say(struct worker *k, json_t *message)
{
    if (k->token[0] != '\0')
        json_object_set_new(message, "token", json_string(k->token));
    /* A parent that waited for a lost message would take the candidate for one that hangs.  An end
     * of this process it notices at once, and tries again. */
    if (!message_send(k->channel, message))
        _exit(EXIT_FAILURE);
    json_decref(message);
    k->last_beat_s = clock_seconds();
}

void worker_doing(struct worker *k, const char *what, ...)
{
    char text[256];
    va_list args;
    va_start(args, what);
    vsnprintf(text, sizeof(text), what, args);
    va_end(args);
    worker_say(k, json_pack("{s:s, s:s, s:i}", "event", "doing", "what", utf8_mend(text),
                            "candidate", k->candidate));
}

void worker_timing(struct worker *k, const struct sampling_progress *so_far)
{
    worker_say(k, json_pack("{s:s, s:s, s:i, s:[ii], s:f}", "event", "doing", "what", "timing",
                            "candidate", k->candidate, "rounds", so_far->rounds, so_far->most,
                            "left_s", so_far->left_s));
}

void worker_passed(struct worker *k, const struct part *part, double error)
{
    if (part->verdict != NULL)
        worker_say(k, json_pack("{s:s, s:s, s:f, s:s}", "event", "passed", "verdict", part->verdict,
                                "error", error, "right", part->right));
}
