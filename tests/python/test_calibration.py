"""calibrate() and write_rows(), and what `fuseplan accuracy` makes of their files."""

import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

import torch
from safetensors.torch import load_file

import common
import fuseplan
import models
from fuseplan import calibration, finder, optimize, probe, program

SCHEMAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'docs', 'schemas')
CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cmd', 'check_json.py')
TEXTS = [' '.join(str((i * j) % 50 + 3) for j in range(1, 2 + i * 7 % 12)) for i in range(20)]


class Words:
    """A tokenizer of numbers."""
    model_max_length = 10

    def __call__(self, texts, truncation, max_length):
        return {'input_ids': [[int(word) for word in text.split()][:max_length] for text in texts]}


class Calibration(common.Case):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.path = os.path.join(self.directory, 'calibration.json')
        self.rows = os.path.join(self.directory, 'rows.safetensors')

    def accuracy(self, model, calibrated=True, dtype='fp16'):
        model.save_pretrained(self.directory)
        fuseplan.write_rows(model, TEXTS, self.rows, tokenizer=Words())
        command = [program.find(), 'accuracy', '--model', self.directory, '--input', self.rows, '-t', dtype,
                   '--format', 'json', '-q']
        command += ['--calibration', self.path] if calibrated else []
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_families(self):
        for name in 'bert', 'mpnet', 't5, gated', 'eurobert', 'modernbert', 'gpt2', 'nomic':
            if not models.has(name):
                continue
            with self.subTest(name):
                model = models.draw(name)
                found = fuseplan.calibrate(model, TEXTS, self.path, tokenizer=Words())
                with open(self.path, encoding='utf-8') as file:
                    self.assertEqual(json.load(file), found)
                subprocess.run([sys.executable, CHECK, os.path.join(SCHEMAS, 'calibration.json'), self.path], check=True)
                self.assertEqual(found['tokens'], sum(min(len(text.split()), 10) for text in TEXTS))
                rows = {(row['precision'], row['gemms']): row for row in self.accuracy(model)}
                self.assertLess(rows['fp32', '']['errors'][-1], 2e-6)
                self.assertLess(rows['fp8', 'qkv out ffn1 ffn2']['errors'][-1], 0.3)
                self.assertEqual(rows['fp8', 'qkv out ffn1 ffn2']['saturated_most'], 0)
                self.assertEqual(self.accuracy(model, dtype='bf16')[3]['beside'], 'bf16')  # which knows these weights

    def test_numbers(self):
        model, seen = models.draw(), []
        layer = model.encoder.layer[1]
        with layer.output.dense.register_forward_pre_hook(lambda _, args: seen.append(args[0].flatten())):
            for text in TEXTS:
                ids = Words()([text], True, 10)['input_ids']
                model(input_ids=torch.tensor(ids))
        found = fuseplan.calibrate(model, TEXTS, self.path, tokenizer=Words())['layers'][1]['activation']
        values = torch.cat(seen).abs()
        self.assertEqual(found['amax'], float(values.max().half()))
        self.assertAlmostEqual(found['rms'], float(values.square().mean().sqrt()), places=6)
        place = math.ceil(0.9999 * len(values)) - 1
        self.assertAlmostEqual(found['quantile'], float(values.half().sort()[0][place]))
        self.assertTrue(112 < found['amax'] / found['scale'] <= 224)

    def test_bf16(self):
        """A model in bf16 is seen in its own numbers, which may be beyond fp16."""
        model = models.draw().bfloat16()
        model.encoder.layer[0].intermediate.dense.weight *= 1e6
        found = fuseplan.calibrate(model, TEXTS, self.path, tokenizer=Words())['layers'][0]['activation']
        self.assertGreater(found['amax'], 65504)
        self.assertEqual(found['amax'], float(torch.tensor(found['amax']).bfloat16()))
        self.assertTrue(112 < found['amax'] / found['scale'] <= 224)

    def test_rows(self):
        model = models.draw()
        fuseplan.write_rows(model, (text for text in TEXTS), self.rows, tokenizer=Words())
        file, at = load_file(self.rows), 0
        self.assertEqual(file['lengths'].tolist(), [min(len(text.split()), 10) for text in TEXTS])
        for text in TEXTS:
            ids = torch.tensor(Words()([text], True, 10)['input_ids'])
            call = probe.record(model, finder.find_stacks(model)[0], lambda ids=ids: model(input_ids=ids))[0]
            self.assertNear(file['rows'][at:at + ids.shape[1]], call.x[0], 1e-6)
            at += ids.shape[1]

    def test_scales(self):
        for amax, scale in (0, 1), (224, 1), (224.1, 2), (112, 0.5), (1.75, 2 ** -7), (2 ** -20, 2 ** -15):
            self.assertEqual(calibration.scale_of(amax), scale)

    def test_saturation(self):
        """What the calibration has seen is within its range, and what is larger is counted as `accuracy` does."""
        model = models.draw()
        fuseplan.calibrate(model, TEXTS, self.path, tokenizer=Words())
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            shares = fuseplan.saturation(model, TEXTS, self.path, tokenizer=Words())
        self.assertEqual(shares, [dict.fromkeys(calibration.TENSORS, 0.0)] * 3)
        with open(self.path) as file:
            found = json.load(file)
        found['layers'][1]['norm1'].update(amax=0.5, scale=calibration.scale_of(0.5))
        with open(self.path, 'w') as file:
            json.dump(found, file)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter('always')
            shares = fuseplan.saturation(model, TEXTS, self.path, tokenizer=Words())
        self.assertRegex(' '.join(str(one.message) for one in said),
                         "^layer 1: 0.[0-9]* of 'norm1' is beyond e4m3's range; calibrate with [a-z ]*$")
        row = next(row for row in self.accuracy(model) if row['gemms'] == 'ffn1')
        self.assertAlmostEqual(shares[1]['norm1'], row['saturated'][1]['norm1'], delta=0.002)
        self.assertEqual(sum(sum(layer.values()) for layer in shares), shares[1]['norm1'])
        model.encoder.layer[2].output.dense.weight[0, 0] += 1
        self.assertRefused('of another model', fuseplan.saturation, model, TEXTS, self.path, tokenizer=Words())

    def test_another_model(self):
        model = models.draw()
        fuseplan.calibrate(model, TEXTS, self.path, tokenizer=Words())
        model.encoder.layer[2].output.dense.weight[0, 0] += 1
        with self.assertRaisesRegex(AssertionError, 'of another model'):
            self.accuracy(model)

    def test_refused(self):
        def calibrate(*args, **kwargs):
            return fuseplan.calibrate(*args, **{'path': self.path, 'tokenizer': Words(), **kwargs})
        model = models.draw()
        self.assertRefused('without a tokenizer', calibrate, model, TEXTS, tokenizer=None)
        self.assertRefused('tokenizer is a int; expected', calibrate, model, TEXTS, tokenizer=5)
        self.assertRefused('sentences is a str; expected a list of str', calibrate, model, 'one', kind=TypeError)
        self.assertRefused('sentences is a int; expected a list of str', calibrate, model, 5, kind=TypeError)
        self.assertRefused('sentences: sentence 1 is a NoneType', calibrate, model, ['1', None], kind=TypeError)
        for function in fuseplan.calibrate, fuseplan.write_rows:
            self.assertRefused('path is a NoneType; expected', function, model, TEXTS, None, tokenizer=Words(),
                               kind=TypeError)
            self.assertRefused('the model is a builtins.NoneType', function, None, TEXTS, self.path)
        self.assertRefused('is empty', calibrate, model, [], kind=ValueError)
        self.assertRefused("no token of sentence 1, ''", calibrate, model, ['1', ''], kind=ValueError)
        os.mkdir(self.path)
        self.assertRefused('directory', calibrate, model, TEXTS, kind=OSError)
        self.assertEqual(os.listdir(self.directory), ['calibration.json'])
        os.rmdir(self.path)
        model.encoder.layer[0].intermediate.dense.weight *= 1e6
        self.assertRefused('layer 0: activation has values that are not finite', calibrate, model, TEXTS)
        self.assertFalse(os.path.exists(self.path))
        model = models.draw()
        optimize(model, [(2, 16)])
        self.assertRefused('call restore() first', calibrate, model, TEXTS)
        layers = torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
        self.assertRefused('MultiheadAttention', calibrate, torch.nn.TransformerEncoder(layers, 2).eval(), TEXTS)


if __name__ == '__main__':
    unittest.main()
