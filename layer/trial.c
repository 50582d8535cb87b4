#include "layer/trial.h"

#include <string.h>

static const char *const names[] = {
    [TRIAL_OK] = "ok", [TRIAL_CENSORED] = "censored", [TRIAL_FAILED] = "failed"};

const char *trial_status_name(enum trial_status status)
{
    return names[status];
}

enum trial_status trial_status_from_name(const char *name)
{
    int status = TRIAL_OK;
    while (status < TRIAL_FAILED && strcmp(names[status], name) != 0)
        status++;
    return (enum trial_status)status;
}
