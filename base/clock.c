#include "base/base.h"

double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct timespec clock_after(double seconds)
{
    const long second_ns = 1000000000;
    double whole = floor(seconds);
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)whole;
    at.tv_nsec += (long)((seconds - whole) * (double)second_ns);
    at.tv_sec += at.tv_nsec / second_ns;
    at.tv_nsec %= second_ns;
    return at;
}

char *clock_utc(char out[CLOCK_UTC_SIZE])
{
    struct timespec now;
    struct tm tm;
    char seconds[20];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, CLOCK_UTC_SIZE, "%s.%03uZ", seconds, (unsigned)(now.tv_nsec / 1000000) % 1000U);
    return out;
}

void patience_begin(struct patience *p, double now)
{
    *p = (struct patience){.looked_s = now};
}

double patience_spent(struct patience *p, double now)
{
    p->spent_s += fmin(now - p->looked_s, PATIENCE_STEP_S);
    p->looked_s = now;
    return p->spent_s;
}
