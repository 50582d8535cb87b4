/* shoot PAGE WIDTH HEIGHT light|dark|paper [JAVASCRIPT]: prints a picture of a page, after the
 * JavaScript has run, in base64: PNG, or PDF for paper.  It takes the pictures of docs/report.md;
 * no test. */
#include "tests/page/browser.h"
#include "tests/suite.h"

static void size_window(struct browser *b, int width, int height)
{
    json_decref(browser_call(b, "Emulation.setDeviceMetricsOverride",
                             json_pack("{si si sf sb}", "width", width, "height", height,
                                       "deviceScaleFactor", 1.0, "mobile", width < 600)));
}

static void choose_colours(struct browser *b, const char *scheme)
{
    json_decref(browser_call(
        b, "Emulation.setEmulatedMedia",
        json_pack("{s[{ss ss}]}", "features", "name", "prefers-color-scheme", "value", scheme)));
}

static const char *const *arguments;

/* A test, because the assertions of browser.c need one around them. */
START_TEST(shoot)
{
    const char *page = arguments[1], *media = arguments[4], *script = arguments[5];
    struct browser b;
    bool paper = strcmp(media, "paper") == 0;
    char *path = realpath(page, NULL);
    ck_assert_ptr_nonnull(path);
    browser_start(&b, browser_program(), test_dir);
    size_window(&b, (int)strtol(arguments[2], NULL, 10), (int)strtol(arguments[3], NULL, 10));
    choose_colours(&b, paper ? "dark" : media);
    browser_open(&b, path);
    if (script != NULL)
        json_decref(browser_value(&b, script));
    json_t *picture =
        paper ? browser_call(&b, "Page.printToPDF", json_pack("{sb}", "preferCSSPageSize", 1))
              : browser_call(&b, "Page.captureScreenshot", json_pack("{ss}", "format", "png"));
    puts(json_string_value(json_object_get(picture, "data")));
    while (browser_count(&b, "Runtime.exceptionThrown") > 0) {
        json_t *thrown = browser_wait(&b, "Runtime.exceptionThrown");
        json_dumpf(thrown, stderr, JSON_INDENT(1));
        json_decref(thrown);
    }
    json_decref(picture);
    browser_stop(&b);
    free(path);
}
END_TEST

int main(int argc, char **argv)
{
    const struct suite_test one = ONCE(shoot);
    if (argc < 5 || browser_program() == NULL) {
        fputs("usage: shoot PAGE WIDTH HEIGHT light|dark|paper [JAVASCRIPT]\n", stderr);
        return EXIT_FAILURE;
    }
    arguments = (const char *const *)argv;
    return suite_main("shoot", test_dir_setup, test_dir_teardown, &one, 1);
}
