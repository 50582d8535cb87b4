#!/usr/bin/env python3
"""bad_lines.py FUSEPLAN RESULTS SEED FIRST COUNT: runs lines FIRST..FIRST+COUNT-1 of the bad command lines that a seed
gives.  Each must end within a time, by itself, with an exit status of the contract, and say why if it fails: lines of
UTF-8 without control characters, the last of which begins with the program's name.  No compiler is on PATH, so that
nothing is measured.
"""

import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile

LIMIT_S = 60
CONTRACT = 0, 1, 2, 3, 4, 130
COMMANDS = b'''translate mask generate export ship bench search query explain train predict replay db doctor help completion
report config accuracy'''.split()
OPTIONS = b'''-b --batch -s --mask -L --eps -t --lengths --target --segments --npy -o --baseline --dump --space --budget
--strategy --quantile --arch -j --db --format --top -q -v -h --help --force --dry-run --he --hepl --version -V -x -- -
--no-such --format= --batch=1 -b1 -qv --mask=file:'''.split()
ARGUMENTS = b'''1 2 4 8 128 0 -1 +1 01 1.5 1e999 nan inf 0x10 0b101 41115 65535 65536 4294967296 99999999999999999999 best
all none 0..10 10..0 0.. ..5 5..5..5 0..65536 1,2,3 1,,2 , 1, 2-6,8-9 9-2 0-15 full causal strided strided: strided:t=
strided:t=0 strided:x=1 bigbird:g=1,w=1,n=1,seed=1 file: file:/dev/null file:none.npy file:. document:n=-1 cpu cuda
cuda:99999 tpu fp16 wide guided random table json csv xml known.db none.db text.db . .. / /dev/null /dev/full /proc/none/x
out out/deep/er text.db/x 90 3m 0s 1h1m sm_80,sm_90a sm_1 nvrtc bert-base list info check forget merge export import bash
%s%n%d $(ls) a=b'''.split() + [b'', b' ', b"'; ls", b'\x1b[31mred', b'\xff\xfe', b'caf\xc3\xa9', b'\xc2\x9b',
                                b'line\nline', b'tab\t', b'\xe2\x80', 6000 * b'x']
WORKLOAD = [(b'--target', b'cpu'), (b'--batch', b'1'), (b'--seq-len', b'128')]
# Right for some commands, so that lines get further.
PAIRS = [pair.split() for pair in b'''--mask causal;--mask strided:t=8;--format json;--format csv;--top 3;--output out;
--db known.db;--db none.db;--npy m.npy;--svg -;--space 0..100;--budget 2;--layers 2;--data text.db;--seed 7;--lengths 3;
--preset bert-tiny;41115 43690;best 41115;known.db text.db'''.split(b';')]


def mutate(r, word):
    """With one byte changed, dropped or doubled."""
    if not word:
        return word
    at = r.randrange(len(word))
    return word[:at] + r.choice([bytes([r.randrange(1, 256)]), b'', 2 * word[at:at + 1]]) + word[at + 1:]


def make_line(seed, own):
    """Most lines begin as right ones do.  own: the options that each command takes."""
    r = random.Random(seed)
    command = r.choice(COMMANDS)
    line = [mutate(r, command) if r.random() < 0.05 else command] if r.random() < 0.975 else []
    for pair in WORKLOAD:
        if pair[0] in own[command] and r.random() < 0.95:
            line += pair
    for pair in r.choices(PAIRS, k=r.randrange(5)):
        if not pair[0].startswith(b'-') or pair[0] in own[command]:
            line += pair
    for _ in range(r.randrange(4)):
        word = r.choice(r.choices([own[command] or OPTIONS, OPTIONS, ARGUMENTS, COMMANDS], [30, 10, 58, 2])[0])
        line.append(mutate(r, word) if r.random() < 1 / 12 else word)
    return [word.replace(b'\0', b'') for word in line]


def limit():
    resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 20, 16 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def judge(line, status, said):
    """What is wrong with how a line ended; None: nothing."""
    if status not in CONTRACT:
        return 'its exit status is none of the contract'
    try:
        text = said.decode()
    except UnicodeDecodeError:
        return 'it said what is no UTF-8'
    if re.search('[\0-\x09\x0b-\x1f\x7f]', text):
        return 'it said a control character'
    if status == 0 or line[:1] == [b'doctor']:  # which says on standard output what is missing
        return None
    if not text:
        return 'it failed and said nothing'
    last = text.rstrip('\n').split('\n')[-1]
    if not last.startswith('fuseplan') and not text.startswith('usage: '):
        return "its last line does not begin with the program's name"
    return None


def main():
    program, results = map(os.path.abspath, sys.argv[1:3])
    seed, first, count = map(int, sys.argv[3:])
    directory = tempfile.mkdtemp()
    os.chdir(directory)
    subprocess.run([program, 'db', 'import', results, '--db', 'known.db', '-q'], stdout=subprocess.DEVNULL, check=True)
    with open('text.db', 'w', encoding='utf-8') as file:
        file.write('no database\n')
    environment = {'HOME': directory, 'PATH': directory, 'FUSEPLAN_LOCK_DIR': directory, 'FUSEPLAN_DB': 'known.db'}
    environment |= {name: value for name, value in os.environ.items() if name.endswith('SAN_OPTIONS')}

    own = {}
    for command in COMMANDS:
        listed = subprocess.run([program, '--complete', command, '--'], env=environment, capture_output=True, check=True)
        own[command] = [line.split(b'\t')[0] for line in listed.stdout.splitlines()]
    bad, statuses = 0, {}
    for i in range(first, first + count):
        line = make_line(seed * 1000003 + i, own)
        try:
            ran = subprocess.run([program, *line], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, timeout=LIMIT_S, preexec_fn=limit, check=False)
            wrong, status, said = judge(line, ran.returncode, ran.stderr), ran.returncode, ran.stderr
        except subprocess.TimeoutExpired:
            wrong, status, said = 'it took too long', 'none', b''
        statuses[status] = statuses.get(status, 0) + 1
        if wrong:
            bad += 1
            print(f'FAILED: {wrong} (exit {status})\nline {i}: fuseplan {line}\n{said[:2000]}')
    print(f'{count} lines, {bad} bad; exits: {statuses}')
    os.chdir('/')
    shutil.rmtree(directory)
    sys.exit(bad > 0)


main()
