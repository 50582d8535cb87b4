"""Refuses an include that goes up, and files of one folder that call each other in circles.

usage: tests/lint/house.py BUILD_DIR, with names of files, each with a NUL behind it, as input

A folder may include those below it.  kernels/ is text: what includes it compiles it.  Calls are those between the
objects of BUILD_DIR: a function that one needs and another defines.  Of an exported library, which is not compiled
here, they are read from the text.  Tables may name what is above them."""
import os
import re
import subprocess
import sys

BELOW = {
    'base': [],
    'layer': ['base'],
    'codegen': ['layer', 'base', 'kernels'],
    'model': ['layer', 'base'],
    'db': ['layer', 'base'],
    'bench': ['codegen', 'layer', 'base', 'kernels'],
    'search': ['bench', 'db', 'model', 'codegen', 'layer', 'base'],
    'cmd': ['search', 'bench', 'db', 'model', 'codegen', 'layer', 'base'],
}
ORACLE = ['layer', 'base']  # of bench/oracle, beside bench/trained: it judges what codegen emits


def upward(path):
    """Yields a sentence for each include of a file that its folder may not have."""
    folder = path.split('/')[0]
    allowed = ORACLE if path.startswith('bench/oracle/') else BELOW.get(folder)
    with open(path, encoding='utf-8') as file:
        for number, line in enumerate(file, 1):
            found = re.match(r'#include "((\w+)/[^"]*)"', line)
            if found and allowed is not None and found[2] != folder and found[2] not in allowed:
                yield f'{path}:{number}: {folder} includes {found[1]}, which lies above or beside it'


def objects(build):
    """The functions that each object of the program defines and needs."""
    for top, _, names in os.walk(build):
        for name in names:
            path = os.path.relpath(os.path.join(top, name), build)
            source = re.match(r'(\w+(?:/\w+)*)/CMakeFiles/[\w-]+\.dir/(\w+)\.c\.o$', path)
            if source and source[1].split('/')[0] in BELOW and 'released' not in path:
                lines = subprocess.run(['nm', '-P', '-g', os.path.join(build, path)], capture_output=True, text=True,
                                       check=True).stdout.splitlines()
                symbols = [line.split()[:2] for line in lines]
                yield (f'{source[1]}/{source[2]}.c', {name for name, kind in symbols if kind == 'T'},
                       {name for name, kind in symbols if kind == 'U'})


def library(target):
    """The functions that each file of an exported library for a target defines and names."""
    for folder in ('kernels/library', f'kernels/{target}'):
        for name in sorted(os.listdir(folder)):
            if name.endswith('.c'):
                path = f'{folder}/{name}'
                with open(path, encoding='utf-8') as file:
                    text = file.read()
                defines = set(re.findall(r'^(?!static|return)\w[\w ]*[ *](\w+)\(', text, re.MULTILINE))
                yield path, defines, set(re.findall(r'\b(\w+)\(', text)) - defines


def reached(calls, begin):
    """All files that a file calls, directly or not."""
    seen, left = set(), [begin]
    while left:
        for callee in calls.get(left.pop(), ()):
            if callee not in seen:
                seen.add(callee)
                left.append(callee)
    return seen


def circles(files):
    """Yields a sentence for each set of files that call each other."""
    owner = {symbol: path for path, defines, _ in files for symbol in defines}
    calls = {path: {owner[s] for s in needs if owner.get(s, path) != path} for path, _, needs in files}
    told = set()
    for path in sorted(calls):
        ring = {other for other in reached(calls, path) if path in reached(calls, other)}
        if ring and not ring & told:
            told |= ring
            yield f'{path}:1: these files call each other in a circle: {", ".join(sorted(ring))}'


for source in sys.stdin.read().split('\0')[:-1]:
    for fault in upward(source):
        print(fault)
program = list(objects(sys.argv[1]))
if not program:
    print(f'{sys.argv[1]}:1: no objects of the program are here: build it first')
for files in program, list(library('cpu')), list(library('cuda')):
    for fault in circles(files):
        print(fault)
