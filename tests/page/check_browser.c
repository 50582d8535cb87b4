/* The page in a headless Chromium.  Without one the suite is skipped. */
#include "tests/page/browser.h"
#include "tests/page/fixture.h"

enum { SKIPPED = 77, WIDE = 1180, PHONE = 390, HEIGHT = 900 };
enum { READY_MS = 1000, TRIES = 5 };

static struct browser b;

static void start(void)
{
    test_dir_setup();
    browser_start(&b, browser_program(), test_dir);
}

static void stop(void)
{
    browser_stop(&b);
    test_dir_teardown();
}

static void size_window(int width)
{
    json_decref(browser_call(&b, "Emulation.setDeviceMetricsOverride",
                             json_pack("{si si sf sb}", "width", width, "height", HEIGHT,
                                       "deviceScaleFactor", 1.0, "mobile", width < 600)));
}

static void set_colours(const char *scheme)
{
    json_decref(browser_call(
        &b, "Emulation.setEmulatedMedia",
        json_pack("{s[{ss ss}]}", "features", "name", "prefers-color-scheme", "value", scheme)));
}

static double number_of(const char *expression)
{
    json_t *value = browser_value(&b, expression);
    ck_assert_msg(json_is_number(value), "%s is no number", expression);
    double number = json_number_value(value);
    json_decref(value);
    return number;
}

/* Whether the text that an expression gives holds `part`. */
static void holds(const char *expression, const char *part)
{
    json_t *value = browser_value(&b, expression);
    const char *text = json_string_value(value);
    ck_assert_msg(text != NULL && strstr(text, part) != NULL, "%s: '%s', expected '%s'", expression,
                  text != NULL ? text : "no text", part);
    json_decref(value);
}

static void equals(const char *expression, double expected)
{
    double number = number_of(expression);
    ck_assert_msg(number == expected, "%s: %g, expected %g", expression, number, expected);
}

/* Nothing was logged or thrown, and nothing but the page itself was asked for. */
static void assert_quiet(void)
{
    static const char *const noises[] = {"Runtime.exceptionThrown", "Log.entryAdded",
                                         "Runtime.consoleAPICalled"};
    number_of("1"); /* what came before it has arrived */
    for (size_t i = 0; i < ARRAY_LEN(noises); i++)
        if (browser_count(&b, noises[i]) > 0) {
            char *text = json_dumps(browser_wait(&b, noises[i]), JSON_COMPACT);
            ck_abort_msg("%s: %s", noises[i], text);
        }
    int files = 0;
    while (browser_count(&b, "Network.requestWillBeSent") > 0) {
        json_t *sent = browser_wait(&b, "Network.requestWillBeSent");
        const char *url =
            json_string_value(json_object_get(json_object_get(sent, "request"), "url"));
        files += strncmp(url, "file:", strlen("file:")) == 0;
        ck_assert_msg(strncmp(url, "file:", 5) == 0 || strncmp(url, "data:", 5) == 0, "%s", url);
        json_decref(sent);
    }
    ck_assert_int_eq(files, 1);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* From the start of loading until the scripts have run and the window answers. */
START_TEST(page_is_ready_within_a_second)
{
    double least = 1e9;
    size_window(WIDE);
    for (int i = 0; i < TRIES && least > READY_MS; i++) {
        browser_open(&b, page_path());
        double ms = number_of("performance.getEntriesByType('navigation')[0].loadEventEnd");
        double painted = number_of("new Promise((done) => requestAnimationFrame(() => "
                                   "requestAnimationFrame(() => done(performance.now()))))");
        ck_assert_double_ge(painted, ms);
        least = painted < least ? painted : least;
    }
    printf("ready after %.0f ms\n", least);
    ck_assert_double_le(least, READY_MS);
    assert_quiet();
    holds("document.title", "Batch 2, 200 tokens");
    holds("at('subtitle').textContent", HOSTILE_SHOWN);
    equals("Number(window.hostile !== undefined)", 0);
    equals("charts.length", 4);
    equals("document.querySelectorAll('#mask-picture svg').length", 2);
    equals("document.querySelectorAll('#chains .chain').length", 3);
}
END_TEST

/* The place of the best plan in the window, in a chart that is scrolled to. */
static void find_best(const char *chart, double *x, double *y)
{
    char script[600];
    snprintf(script, sizeof(script),
             "{ at('%s').scrollIntoView({ behavior: 'instant', block: 'center' });"
             "  var chart = charts.find((one) => at('%s').contains(one.canvas));"
             "  var index = chart.spec.points.findIndex((point) => point.plan === ranked[0]);"
             "  var corner = chart.plot.over.getBoundingClientRect(); 0 }",
             chart, chart);
    number_of(script);
    *x = number_of("corner.left + placesOf(chart)[index][0]");
    *y = number_of("corner.top + placesOf(chart)[index][1]");
}

START_TEST(pointer_finds_plans)
{
    static const char *const plan_charts[] = {"convergence-chart", "plans-chart",
                                              "prediction-chart"};
    double x, y;
    size_window(WIDE);
    browser_open(&b, page_path());
    for (size_t i = 0; i < ARRAY_LEN(plan_charts); i++) {
        find_best(plan_charts[i], &x, &y);
        browser_move(&b, x, y);
        equals("Number(chart.tip.hidden)", 0);
        holds("chart.tip.textContent", "Plan ");
        holds("chart.tip.textContent", "a layer");
        holds("chart.tip.textContent", "fuses");
        equals("Number(chart.tip.textContent.includes(`Plan ${plans.value[ranked[0]]}`))", 1);
        browser_move(&b, 5, 5);
        equals("Number(chart.tip.hidden)", 1);
        browser_click(&b, x, y);
        equals("Number(at('chosen').hidden)", 0);
        holds("at('chosen-command').textContent",
              " -b 2 -s 200 -m bigbird:g=14,w=14,n=1,seed=0 --lengths 200,77 --target cpu");
        equals("Number(at('chosen-command').textContent.startsWith("
               "`fuseplan bench ${plans.value[ranked[0]]} `))",
               1);
        number_of("{ at('close').click(); Number(at('chosen').hidden) }");
    }
    assert_quiet();
}
END_TEST

START_TEST(keyboard_finds_plans)
{
    size_window(WIDE);
    browser_open(&b, page_path());
    number_of("{ var chart = charts[1]; chart.canvas.focus(); 0 }");
    browser_key(&b, "ArrowRight");
    equals("chart.spec.points[chart.shown].plan - ranked[0]", 0);
    browser_key(&b, "ArrowRight");
    equals("chart.spec.points[chart.shown].plan - ranked[1]", 0);
    holds("at('spoken').textContent", "Plan ");
    browser_key(&b, "Enter");
    equals("Number(at('chosen').hidden)", 0);
    browser_key(&b, "Escape");
    equals("Number(chart.tip.hidden)", 1);
    /* All that a click does, the Tab key reaches. */
    equals("[...document.querySelectorAll('a, button, input')].filter((one) => one.tabIndex < "
           "0).length",
           0);
    assert_quiet();
}
END_TEST

/* Texts with less contrast than WCAG 2.1 asks for (4.5, or 3 for large ones), as one text. */
static const char faint[] =
    "(() => {"
    "  const level = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** "
    "2.4; };"
    "  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);"
    "  const light = ([r, g, b]) => 0.2126 * level(r) + 0.7152 * level(g) + 0.0722 * level(b);"
    "  const ground = (e) => { for (; e; e = e.parentElement) { const c = "
    "rgb(getComputedStyle(e).backgroundColor);"
    "    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };"
    "  const found = [];"
    "  for (const e of document.body.querySelectorAll('*')) {"
    "    if (['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(e.tagName) || !e.getClientRects().length) "
    "continue;"
    "    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;"
    "    const a = light(rgb(getComputedStyle(e).color)), b = light(ground(e));"
    "    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);"
    "    if (ratio < (parseFloat(getComputedStyle(e).fontSize) >= 24 ? 3 : 4.5))"
    "      found.push(`${ratio.toFixed(2)} ${e.className} ${e.textContent.slice(0, 40)}`);"
    "  }"
    "  return `faint: ${found.length}; ${found.join('; ')}`; })()";

/* Headings that skip a level, images and fields without a name, targets that do not exist. */
static const char unnamed[] =
    "(() => { const found = []; let before = 0;"
    "  for (const h of document.querySelectorAll('h1, h2, h3')) { const level = "
    "Number(h.tagName[1]);"
    "    if (level > before + 1) found.push(h.textContent); before = level; }"
    "  for (const e of document.querySelectorAll('svg')) if (!e.querySelector('title')) "
    "found.push('svg');"
    "  for (const e of document.querySelectorAll('[aria-labelledby]'))"
    "    if (!document.getElementById(e.getAttribute('aria-labelledby'))) found.push(e.id);"
    "  for (const e of document.querySelectorAll('[role=region], [role=application], nav, aside'))"
    "    if (!e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby')) "
    "found.push(e.outerHTML);"
    "  for (const e of document.querySelectorAll('a[href^=\"#\"]'))"
    "    if (!document.querySelector(e.getAttribute('href'))) found.push(e.href);"
    "  for (const e of document.querySelectorAll('button')) if (!e.textContent.trim()) "
    "found.push('button');"
    "  return `unnamed: ${found.length}; ${found.join('; ')}`; })()";

START_TEST(forms_can_be_read)
{
    static const struct {
        int width;
        const char *colours;
    } forms[] = {{WIDE, "light"}, {WIDE, "dark"}, {PHONE, "light"}, {PHONE, "dark"}};
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        size_window(forms[i].width);
        set_colours(forms[i].colours);
        browser_open(&b, page_path());
        number_of("{ choosePlan(plans.value[ranked[0]]); 0 }");
        holds(faint, "faint: 0;");
        holds(unnamed, "unnamed: 0;");
        equals("Math.max(document.documentElement.scrollWidth - innerWidth, 0)", 0);
        equals("charts.filter((one) => one.plot.width > one.canvas.clientWidth + 1).length", 0);
    }
    assert_quiet();
}
END_TEST

/* Paper is light, whatever the screen, and the charts fit it. */
START_TEST(page_prints)
{
    set_colours("dark");
    size_window(WIDE);
    browser_open(&b, page_path());
    number_of("{ addEventListener('beforeprint', () => { window.paper = color('paper');"
              "  window.paperWidth = Math.max(...charts.map((one) => one.plot.width)); }); 0 }");
    json_decref(browser_call(&b, "Page.printToPDF", json_pack("{sb}", "preferCSSPageSize", 1)));
    holds("paper", "#ffffff");
    equals("paperWidth", 680);
    holds("color('paper')", "#191d25");
    assert_quiet();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {ONCE(page_is_ready_within_a_second),
                                       ONCE(pointer_finds_plans), ONCE(keyboard_finds_plans),
                                       ONCE(forms_can_be_read), ONCE(page_prints)};
    if (browser_program() == NULL) {
        puts("skipped: there is no chromium on PATH; install chromium");
        return SKIPPED;
    }
    return page_suite("browser", start, stop, tests, ARRAY_LEN(tests));
}
