#!/usr/bin/env python3
"""check_json.py SCHEMA FILE: whether a JSON text, or each line of it where FILE ends in .ndjson (the schema's items
then), is as a schema of docs/schemas/ says.

Of JSON Schema it knows what those use; a keyword that it does not know is an error, so that no schema promises what is
not checked.
"""

import json
import os
import sys

TYPES = {
    'object': lambda v: isinstance(v, dict),
    'array': lambda v: isinstance(v, list),
    'string': lambda v: isinstance(v, str),
    'number': lambda v: is_number(v),
    'integer': lambda v: is_number(v) and isinstance(v, int),
    'boolean': lambda v: isinstance(v, bool),
    'null': lambda v: v is None,
}
NOTES = '$schema', 'title', 'description'
errors = []


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(a, b):
    return type(a) is type(b) and a == b


def unique(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f'a member is there twice, of {names}')
    return dict(pairs)


def load(text):
    return json.loads(text, object_pairs_hook=unique)


def referred(reference):
    """The schema at FILE#/NAME/NAME...; a reference always names its file."""
    name, _, path = reference.partition('#')
    with open(os.path.join(os.path.dirname(sys.argv[1]), name), encoding='utf-8') as file:
        schema = load(file.read())
    for part in filter(None, path.split('/')):
        schema = schema[part]
    return schema


def check(schema, value, path):
    """Keywords of other types than the value's hold by themselves."""
    def expect(what, good):
        if not good:
            errors.append(f'{path}: {what}')

    properties = schema.get('properties', {})
    for keyword, argument in schema.items():
        if keyword == 'type':
            types = [argument] if isinstance(argument, str) else argument
            expect(f'is no {types}', any(TYPES[name](value) for name in types))
        elif keyword == '$ref':
            check(referred(argument), value, path)
        elif keyword == 'enum':
            expect(f'is none of {argument}', any(same(word, value) for word in argument))
        elif keyword == 'properties':
            for name in value if isinstance(value, dict) else ():
                if name in properties:
                    check(properties[name], value[name], f'{path}.{name}')
        elif keyword == 'additionalProperties' and argument is False:
            for name in value if isinstance(value, dict) else ():
                expect(f'has the member {name}, which the schema lacks', name in properties)
        elif keyword == 'required':
            for name in argument if isinstance(value, dict) else ():
                expect(f'lacks {name}', name in value)
        elif keyword == 'items':
            for i, item in enumerate(value if isinstance(value, list) else ()):
                check(argument, item, f'{path}[{i}]')
        elif keyword in ('minItems', 'maxItems'):
            sign = 1 if keyword == 'minItems' else -1
            expect(f'breaks {keyword}', not isinstance(value, list) or sign * len(value) >= sign * argument)
        elif keyword in ('minimum', 'maximum'):
            sign = 1 if keyword == 'minimum' else -1
            expect(f'breaks {keyword}', not is_number(value) or sign * value >= sign * argument)
        else:
            expect(f'the schema has an unknown keyword: {keyword}', keyword in NOTES)


def main():
    schema = referred(os.path.basename(sys.argv[1]))
    with open(sys.argv[2], encoding='utf-8', newline='') as file:
        text = file.read()
    if not sys.argv[2].endswith('.ndjson'):
        check(schema, load(text), '')
    else:
        if not text.endswith('\n'):
            errors.append('it does not end with a line')
        for number, line in enumerate(text.split('\n')[:-1], 1):
            check(schema.get('items', schema), load(line), f'line {number}')
    sys.exit('\n'.join(errors) or 0)


main()
