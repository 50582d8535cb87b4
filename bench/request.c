/* A candidate as it is sent to the worker, and the verdicts that the worker returns. */
#include "bench/bench_int.h"

/* Names the verdict on a choice and looks for one of an earlier session.  Choices whose segments
 * differ in their operands alone may share a binary. */
static void recall_verdict(const struct bench *b, struct binary *binary)
{
    SCOPED_BUF text = BUF_INIT;
    buf_addf(&text, "%s %s ", b->verdict_base, binary->content_hash);
    choice_name(&binary->choice, &text);
    buf_adds(&text, " ");
    schedule_text(binary->choice.impl, &binary->choice.schedule, &text);
    hash_text(text.ptr, text.len, binary->verdict);
    buf_reset(&text);
    if (!b->afresh && cache_get(&b->cache, CACHE_VERDICT, binary->verdict, &text, NULL)) {
        char *rest;
        binary->error = strtod(text.ptr, &rest);
        snprintf(binary->right, sizeof(binary->right), "%s", rest + strspn(rest, " "));
    }
}

static json_t *choice_message(struct bench *b, const struct choice *c)
{
    struct binary *binary = builder_find(&b->builder, c);
    json_t *message = message_of_choice(c);
    json_object_set_new(message, "path", json_string(binary->path));
    if (binary->error < 0)
        recall_verdict(b, binary);
    json_object_set_new(message, "verdict", json_string(binary->verdict));
    json_object_set_new(message, "verified", json_boolean(binary->error >= 0));
    json_object_set_new(message, "right", json_string(binary->right));
    return message;
}

json_t *request_of(struct bench *b, struct runnable what)
{
    json_t *messages = json_array();
    for (int i = 0; i < what.count; i++)
        json_array_append_new(messages, choice_message(b, &what.choices[i]));
    return json_pack("{s:b, s:b, s:o}", "alone", (int)what.alone, "packed", (int)what.packed,
                     "choices", messages);
}

void request_blame(const struct choice *c, struct status *reason)
{
    SCOPED_BUF name = BUF_INIT;
    choice_name(c, &name);
    status_prefix(reason, "%s", name.ptr);
}

/* Only of a binary of this session: a candidate might send anything as the name of a file. */
static void keep_verdict(struct bench *b, const char *key, double error, const char *right)
{
    SCOPED_BUF text = BUF_INIT;
    for (int i = 0; i < b->builder.count; i++) {
        struct binary *binary = b->builder.binaries[i];
        if (key[0] == '\0' || !(error >= 0) || strcmp(binary->verdict, key) != 0)
            continue;
        binary->error = error;
        snprintf(binary->right, sizeof(binary->right), "%s", right);
        buf_reset(&text);
        buf_addf(&text, "%.17g %s", error, binary->right);
    }
    if (text.len > 0) /* else the next session verifies again */
        cache_put(&b->cache, CACHE_VERDICT, key, text.ptr, text.len, STATUS_IGNORED);
}

/* Of timing the worker gives the rounds and the time left, of all else the candidate. */
static void tell(const struct bench *b, const char *what, const json_t *event)
{
    const json_t *rounds = json_object_get(event, "rounds"),
                 *left = json_object_get(event, "left_s");
    struct step step = {.phase = what, .left_s = left != NULL ? json_number_value(left) : NAN};
    if (rounds != NULL) {
        step.done = json_integer_value(json_array_get(rounds, 0));
        step.total = json_integer_value(json_array_get(rounds, 1));
    } else if (b->candidates > 1) {
        step.done = 1 + json_integer_value(json_object_get(event, "candidate"));
        step.total = b->candidates;
    }
    step_tell(&b->builder.listener, &step);
}

void request_event(void *ctx, const json_t *event)
{
    struct bench *b = ctx;
    const char *verdict = json_string_value(json_object_get(event, "verdict"));
    const char *what = json_string_value(json_object_get(event, "what"));
    const char *right = json_string_value(json_object_get(event, "right"));
    if (verdict != NULL)
        keep_verdict(b, verdict, json_number_value(json_object_get(event, "error")),
                     right != NULL ? right : "");
    if (what != NULL)
        tell(b, what, event);
}
