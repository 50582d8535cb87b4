#include "cmd/cmd.h"

int ms_decimals(double ms)
{
    return ms < 1 ? 5 : 3;
}

json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}
