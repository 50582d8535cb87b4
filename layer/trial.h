/* How a trial of a plan ended, for bench, which runs trials, and db, which stores them. */
#pragma once

/* A trial is the attempt to compile, verify and time one candidate. */
enum trial_status {
    TRIAL_OK,
    TRIAL_CENSORED, /* timing stopped early: the time is a lower bound */
    TRIAL_FAILED    /* a struct status beside it says why */
};

/* "ok", "censored", "failed".  An unknown name means TRIAL_FAILED. */
const char *trial_status_name(enum trial_status status);
enum trial_status trial_status_from_name(const char *name);
