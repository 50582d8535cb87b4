/* The page as text: its data, its structure, what it must not hold. */
#include "layer/trial.h"
#include "tests/page/fixture.h"

#include <ctype.h>
#include <jansson.h>

static struct status st;

enum { PAGE_MAX_BYTES = 3 * 1000 * 1000 };

static char *read_page(void)
{
    struct buf text;
    buf_init(&text);
    OK(file_read(page_path(), 0, &text, &st));
    ck_assert_uint_le(text.len, PAGE_MAX_BYTES);
    ck_assert_uint_eq(strlen(text.ptr), text.len);
    ck_assert(utf8_is_valid(text.ptr));
    return buf_detach(&text);
}

static int occurrences(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
        count++;
    return count;
}

static json_t *read_data(void)
{
    static const char begin[] = "<script type=\"application/json\" id=\"data\">";
    char *page = read_page(), *at = strstr(page, begin);
    ck_assert_ptr_nonnull(at);
    at += strlen(begin);
    char *end = strchr(at, '<'); /* as a browser finds it: the data has none */
    ck_assert_int_eq(strncmp(end, "</script>", strlen("</script>")), 0);
    json_error_t error;
    json_t *data = json_loadb(at, (size_t)(end - at), 0, &error);
    ck_assert_msg(data != NULL, "%s", error.text);
    free(page);
    return data;
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    ck_assert_msg(text != NULL, "no text %s", key);
    return text;
}

START_TEST(hostile_texts_stay_text)
{
    json_t *data = read_data();
    ck_assert_str_eq(text_at(json_object_get(data, "device"), "name"), HOSTILE_SHOWN);
    json_t *reasons = json_object_get(json_object_get(data, "plans"), "reasons");
    ck_assert_int_eq(json_integer_value(json_object_get(reasons, "compile: </script>\\xff<!--")),
                     1);
    json_decref(data);
}
END_TEST

START_TEST(every_plan_is_there)
{
    json_t *data = read_data(), *column;
    json_t *columns = json_object_get(json_object_get(data, "plans"), "columns");
    const char *key;
    bool seen[65536] = {false};
    json_object_foreach(columns, key, column)
    {
        ck_assert_msg(json_array_size(column) == PAGE_PLANS, "%s: %zu", key,
                      json_array_size(column));
    }
    json_t *values = json_object_get(columns, "value"), *us = json_object_get(columns, "us");
    json_t *status = json_object_get(columns, "status");
    int counts[3] = {0};
    for (size_t i = 0; i < PAGE_PLANS; i++) {
        json_int_t value = json_integer_value(json_array_get(values, i));
        json_int_t how = json_integer_value(json_array_get(status, i));
        ck_assert(value >= 32768 && value <= 49151 && !seen[value]);
        seen[value] = true;
        counts[how]++;
        ck_assert(json_is_null(json_array_get(us, i)) == (how == TRIAL_FAILED));
    }
    ck_assert_int_eq(counts[TRIAL_CENSORED], 1);
    ck_assert_int_eq(counts[TRIAL_FAILED], 1);
    json_decref(data);
}
END_TEST

START_TEST(workload_and_best_plan_are_named)
{
    json_t *data = read_data(), *best = json_object_get(data, "best");
    ck_assert_str_eq(text_at(data, "options"),
                     "-b 2 -s 200 -m bigbird:g=14,w=14,n=1,seed=0 --lengths 200,77 --target cpu");
    ck_assert_int_eq((int)json_array_size(json_object_get(data, "finals")), 3);
    ck_assert_int_eq((int)json_array_size(json_object_get(data, "slots")), 121);
    ck_assert_int_eq((int)json_array_size(json_object_get(data, "baselines")), 2);
    ck_assert(json_number_value(json_object_get(best, "us_per_layer")) > 0);
    json_t *rates = json_object_get(data, "rates");
    ck_assert(json_is_true(json_object_get(rates, "of_device")));
    ck_assert_double_eq(json_number_value(json_object_get(rates, "bytes_per_s")), 2e10);
    ck_assert_ptr_nonnull(json_object_get(json_object_get(data, "mask"), "shades"));
    json_decref(data);
}
END_TEST

/* One file: nothing that a browser would load. */
START_TEST(page_asks_for_no_other_file)
{
    static const char *const loads[] = {" src=",          "@import", "url(",        "fetch(",
                                        "XMLHttpRequest", "import(", "href=\"http", "sendBeacon"};
    char *page = read_page();
    for (size_t i = 0; i < ARRAY_LEN(loads); i++)
        ck_assert_msg(strstr(page, loads[i]) == NULL, "the page has '%s'", loads[i]);
    ck_assert_ptr_nonnull(strstr(page, "default-src 'none'"));
    ck_assert_ptr_null(strstr(page, "{{"));
    ck_assert_ptr_nonnull(strstr(page, "Copyright (c) 2022 Leon Sorokin"));
    free(page);
}
END_TEST

START_TEST(structure_is_whole)
{
    char *page = read_page();
    ck_assert_int_eq(occurrences(page, "<script"), occurrences(page, "</script>"));
    ck_assert_int_eq(occurrences(page, "<script"), 5);
    ck_assert_int_eq(occurrences(page, "<h1"), 1);
    ck_assert_int_eq(occurrences(page, "<section"), occurrences(page, "<h2"));
    ck_assert_int_eq(occurrences(page, "<main"), 1);
    ck_assert_ptr_nonnull(strstr(page, "<html lang=\"en\">"));
    /* Each element that the scripts ask for is there, once. */
    for (const char *at = page; (at = strstr(at, "at(\"")) != NULL; at++) {
        char id[80];
        const char *name = at + strlen("at(\"");
        if (at > page && isalnum((unsigned char)at[-1]) != 0)
            continue;
        snprintf(id, sizeof(id), " id=\"%.*s\"", (int)strcspn(name, "\""), name);
        ck_assert_msg(occurrences(page, id) == 1, "%s: %d times", id, occurrences(page, id));
    }
    free(page);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {ONCE(hostile_texts_stay_text), ONCE(every_plan_is_there),
                                       ONCE(workload_and_best_plan_are_named),
                                       ONCE(page_asks_for_no_other_file), ONCE(structure_is_whole)};
    return page_suite("page", NULL, NULL, tests, ARRAY_LEN(tests));
}
