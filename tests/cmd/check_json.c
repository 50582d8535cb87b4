/* check_json SCHEMA FILE: whether a JSON text, or each line of it where FILE ends in .ndjson (the
 * schema's items then), is as a schema of docs/schemas/ says.
 *
 * Of JSON Schema it knows what those use; a keyword that it does not know is an error, so that no
 * schema promises what is not checked. */
#include "base/base.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int errors;
static json_t *files;         /* schemas by name, loaded when the first one refers to them */
static const char *directory; /* where they lie */

static void complain(const char *path, const char *what, const char *name)
{
    fprintf(stderr, "%s: %s%s\n", path[0] != '\0' ? path : "(root)", what, name);
    errors++;
}

static bool has_type(json_t *value, const char *type)
{
    const struct {
        const char *name;
        bool is;
    } types[] = {
        {"object", json_is_object(value)},   {"array", json_is_array(value)},
        {"string", json_is_string(value)},   {"number", json_is_number(value)},
        {"integer", json_is_integer(value)}, {"boolean", json_is_boolean(value)},
        {"null", json_is_null(value)},
    };
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(types[i].name, type) == 0)
            return types[i].is;
    return false;
}

static void check_type(json_t *types, json_t *value, const char *path)
{
    size_t i;
    json_t *type;
    bool fits = json_is_string(types) && has_type(value, json_string_value(types));
    json_array_foreach(types, i, type) fits |= has_type(value, json_string_value(type));
    if (!fits)
        complain(path, "is not of the type wanted", "");
}

static void check_enum(json_t *words, json_t *value, const char *path)
{
    size_t i;
    json_t *word;
    bool fits = false;
    json_array_foreach(words, i, word) fits |= json_equal(word, value) != 0;
    if (!fits)
        complain(path, "is none of the words wanted", "");
}

static void check(json_t *schema, json_t *value, const char *path);

static void check_properties(json_t *properties, json_t *value, const char *path)
{
    const char *key;
    json_t *of_key;
    json_object_foreach(properties, key, of_key)
    {
        char inner[512];
        json_t *member = json_object_get(value, key);
        snprintf(inner, sizeof(inner), "%s.%s", path, key);
        if (member != NULL)
            check(of_key, member, inner);
    }
}

/* additionalProperties is false wherever it is given. */
static void check_no_others(json_t *properties, json_t *value, const char *path)
{
    const char *key;
    json_t *member;
    json_object_foreach(value, key, member)
    {
        if (json_object_get(properties, key) == NULL)
            complain(path, "has a member that the schema lacks: ", key);
    }
}

static void check_required(json_t *names, json_t *value, const char *path)
{
    size_t i;
    json_t *name;
    json_array_foreach(names, i, name)
    {
        if (json_object_get(value, json_string_value(name)) == NULL)
            complain(path, "lacks ", json_string_value(name));
    }
}

static void check_items(json_t *items, json_t *value, const char *path)
{
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item)
    {
        char inner[512];
        snprintf(inner, sizeof(inner), "%s[%zu]", path, i);
        check(items, item, inner);
    }
}

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *value = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (value == NULL)
        fprintf(stderr, "%s:%d:%d: %s\n", path, error.line, error.column, error.text);
    return value;
}

/* The schema at FILE#/NAME/NAME...; a reference always names its file. */
static json_t *referred(const char *reference)
{
    char name[512], path[1024];
    snprintf(name, sizeof(name), "%s", reference);
    char *at = strchr(name, '#');
    if (at != NULL)
        *at++ = '\0';
    json_t *schema = json_object_get(files, name);
    if (schema == NULL) {
        snprintf(path, sizeof(path), "%s/%s", directory, name);
        schema = load(path);
        json_object_set_new(files, name, schema);
    }
    char *rest = at, *part;
    while (rest != NULL && (part = strtok_r(rest, "/", &rest)) != NULL)
        schema = json_object_get(schema, part);
    return schema;
}

static void check_reference(json_t *reference, json_t *value, const char *path)
{
    json_t *schema = referred(json_string_value(reference));
    if (schema == NULL)
        complain(path, "has a schema that is nowhere: ", json_string_value(reference));
    else
        check(schema, value, path);
}

/* One keyword of a schema; those of other types than the value's hold by themselves. */
static void check_keyword(json_t *schema, const char *keyword, json_t *argument, json_t *value,
                          const char *path)
{
    double number = json_number_value(value), bound = json_number_value(argument);
    double size = json_is_array(value) ? (double)json_array_size(value) : bound;
    if (strcmp(keyword, "type") == 0)
        check_type(argument, value, path);
    else if (strcmp(keyword, "$ref") == 0)
        check_reference(argument, value, path);
    else if (strcmp(keyword, "enum") == 0)
        check_enum(argument, value, path);
    else if (strcmp(keyword, "properties") == 0)
        check_properties(argument, value, path);
    else if (strcmp(keyword, "additionalProperties") == 0)
        check_no_others(json_object_get(schema, "properties"), value, path);
    else if (strcmp(keyword, "required") == 0 && json_is_object(value))
        check_required(argument, value, path);
    else if (strcmp(keyword, "items") == 0)
        check_items(argument, value, path);
    else if (strcmp(keyword, "minItems") == 0 && size < bound)
        complain(path, "has too few items", "");
    else if (strcmp(keyword, "maxItems") == 0 && size > bound)
        complain(path, "has too many items", "");
    else if (strcmp(keyword, "minimum") == 0 && json_is_number(value) && number < bound)
        complain(path, "is below the minimum", "");
    else if (strcmp(keyword, "maximum") == 0 && json_is_number(value) && number > bound)
        complain(path, "is above the maximum", "");
}

static void check(json_t *schema, json_t *value, const char *path)
{
    static const char *const known[] = {
        "$schema",  "$ref",       "title",    "description", "type",
        "enum",     "properties", "required", "items",       "additionalProperties",
        "minItems", "maxItems",   "minimum",  "maximum",
    };
    const char *keyword;
    json_t *argument;
    json_object_foreach(schema, keyword, argument)
    {
        bool knows = false;
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
            knows |= strcmp(keyword, known[i]) == 0;
        if (!knows)
            complain(path, "has a schema with an unknown keyword: ", keyword);
        check_keyword(schema, keyword, argument, value, path);
    }
}

static void check_lines(json_t *items, const char *path)
{
    struct buf text;
    struct status st = STATUS_INIT;
    int line = 0;
    buf_init(&text);
    if (file_read(path, 0, &text, &st) != 0)
        complain(path, "", st.message);
    char *at = text.ptr;
    for (char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        json_t *value = json_loadb(at, (size_t)(end - at), JSON_REJECT_DUPLICATES, NULL);
        char name[64];
        snprintf(name, sizeof(name), "line %d", ++line);
        if (value == NULL)
            complain(name, "is not JSON", "");
        else
            check(items, value, name);
        json_decref(value);
    }
    if (line == 0)
        complain(path, "holds no line", "");
    if (at != text.ptr + text.len)
        complain(path, "does not end with a line", "");
    buf_release(&text);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: check_json SCHEMA FILE\n", stderr);
        return 2;
    }
    const char *dot = strrchr(argv[2], '.');
    char *slash = strrchr(argv[1], '/');
    directory = slash != NULL ? argv[1] : ".";
    files = json_object();
    if (slash != NULL)
        *slash = '\0';
    json_t *schema = referred(slash != NULL ? slash + 1 : argv[1]);
    if (schema == NULL)
        return EXIT_FAILURE;
    if (dot != NULL && strcmp(dot, ".ndjson") == 0) {
        json_t *items = json_object_get(schema, "items");
        check_lines(items != NULL ? items : schema, argv[2]);
    } else {
        json_t *value = load(argv[2]);
        if (value != NULL)
            check(schema, value, "");
        errors += value == NULL;
        json_decref(value);
    }
    json_decref(files);
    return errors == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
