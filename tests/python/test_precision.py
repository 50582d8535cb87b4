"""optimize() with GEMMs in e4m3, which no CPU runs: what it asks the program for, by a stand-in whose libraries are
those of a CPU, and what it refuses."""

import copy
import json
import os
import tempfile
import types
import unittest
from unittest import mock

import torch

import common
import fuseplan
import models
from common import SHAPES, run
from fuseplan import explain, optimize, precision, program, stats
from test_calibration import TEXTS, Words

# Notes what it is called with; searches nothing, and exports for the CPU, in fp32.
STAND_IN = '''#!/bin/sh
echo "$*" >>%(log)s
if [ "$1" = search ]; then
  cat %(found)s
  exit
fi
[ "$1" = export ] || exec %(real)s "$@"
count=$#
while [ $count -gt 0 ]; do
  word=$1
  shift
  count=$((count - 1))
  case $word in
  --precision | --calibration) shift; count=$((count - 1)) ;;
  fp16 | bf16) set -- "$@" fp32 ;;
  *) set -- "$@" "$word" ;;
  esac
done
exec %(real)s "$@"
'''


def row(name, ms):
    return {'precision': name, 'median_ms': ms}


class Precision(common.Case):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.log, self.found, path = (os.path.join(directory.name, name) for name in ('log', 'found', 'fuseplan'))
        with open(path, 'w') as file:
            file.write(STAND_IN % {'log': self.log, 'found': self.found, 'real': program.find()})
        os.chmod(path, 0o755)
        for patch in (mock.patch.dict(os.environ, FUSEPLAN=path, FUSEPLAN_PYTHON_CACHE=directory.name),
                      mock.patch.object(precision, 'check_place')):
            patch.start()
            self.addCleanup(patch.stop)
        self.plain = models.draw()

    def optimize(self, *args, **kwargs):
        usual = {'calibration': TEXTS, 'tokenizer': Words()}
        return optimize(copy.deepcopy(self.plain), SHAPES, *args, **{**usual, **kwargs})

    def calls(self, command):
        with open(self.log) as file:
            return [line.split() for line in file if line.startswith(command + ' ')]

    def assertRan(self, model):
        self.assertAlike((self.plain, model), lambda m: run(m)[0].last_hidden_state)
        self.assertEqual(stats(model)['encoder.layer']['plain'], {})

    def test_named(self):
        model = self.optimize(precision='ffn2,qkv')
        self.assertRan(model)
        words, = self.calls('export')
        self.assertEqual(words[words.index('--precision') + 1], 'qkv,ffn2')
        self.assertEqual(words[words.index('-t') + 1], 'fp16')
        path = words[words.index('--calibration') + 1]
        with open(path) as file:
            self.assertEqual(json.load(file)['sentences'], len(TEXTS))
        self.assertEqual(self.calls('search'), [])
        engine = model.encoder.layer.stack.engine
        self.assertTrue(5e-3 < engine.loss < 0.3)
        self.assertIn('fp32 with qkv,ffn2 in e4m3, sizes (2, 32)', explain(model))
        self.assertIn(f'of its own layers with these GEMMs in e4m3 {engine.loss:.2g}', explain(model))
        self.assertIn('qkv,ffn2 in e4m3', repr(model.encoder.layer.stack))
        with mock.patch.object(engine.module, 'info', types.SimpleNamespace(precision=1 | 8)):
            self.assertEqual(engine.module._precision_words()[:3], ['--precision', 'qkv,ffn2', '--calibration'])
        # The file of before, and of all of them: another library.
        with open(self.found, 'w') as file:
            json.dump({'precisions': [row('fp16', 2), row('fp8', 1)]}, file)
        model = self.optimize(2, precision='fp8', calibration=path)
        self.assertGreater(model.encoder.layer.stack.engine.loss, engine.loss)
        words, = self.calls('search')
        self.assertEqual(words[words.index('--precision') + 1], 'fp8')
        self.assertEqual(len(self.calls('export')), 2)
        self.optimize(precision='qkv,ffn2')
        self.assertEqual(len(self.calls('export')), 2)

    def test_bf16(self):
        """Of the type that is asked for, or the model's own."""
        model = self.optimize(precision='qkv,ffn1', dtype=torch.bfloat16)
        self.assertRan(model)
        engine = model.encoder.layer.stack.engine
        self.assertTrue(5e-3 < engine.loss < 0.3)
        words, = self.calls('export')
        self.assertEqual(words[words.index('-t') + 1], 'bf16')
        path = words[words.index('--calibration') + 1]
        with open(path) as file:
            found = json.load(file)
        self.plain = models.draw().bfloat16()  # numbers of which the fingerprint is the same
        self.optimize(precision='fp8', calibration=path)
        words = self.calls('export')[1]
        self.assertEqual(words[words.index('-t') + 1], 'bf16')
        own = fuseplan.calibrate(self.plain, TEXTS, path, tokenizer=Words())
        self.assertEqual(own['model_bf16'], found['model_bf16'])
        self.assertNotEqual(own['model'], found['model'])
        self.optimize(precision='fp8', calibration=path, dtype='fp16')
        words = self.calls('export')[2]
        self.assertEqual(words[words.index('-t') + 1], 'fp16')
        del own['model_bf16']  # as earlier versions wrote it
        with open(path, 'w') as file:
            json.dump(own, file)
        self.assertRefused("it has no 'model_bf16'", self.optimize, precision='fp8', calibration=path, kind=ValueError)

    def test_chosen(self):
        with open(self.found, 'w') as file:
            json.dump({'precisions': [row('fp16', 3), row('qkv,out', 1), row('ffn1', 2), row('ffn2', None)]}, file)
        model = self.optimize(2, error=0.125)
        self.assertRan(model)
        words, = self.calls('search')
        self.assertEqual(words[words.index('--error') + 1], '0.125')
        with open(words[words.index('--accuracy') + 1]) as file:
            self.assertEqual([(found['gemms'], found['beside']) for found in json.load(file)],
                             [(gemms, 'fp16') for gemms in ('qkv', 'out', 'ffn1', 'ffn2', 'qkv out ffn1 ffn2')])
        words, = self.calls('export')
        self.assertEqual(words[words.index('--precision') + 1], 'qkv,out')
        model(input_ids=torch.ones(4, 8).long())
        fuseplan.tune(model, 2, progress=False)
        for words in self.calls('search')[-1], self.calls('export')[-1]:
            self.assertEqual(words[words.index('--precision') + 1], 'qkv,out')
        self.assertIn('qkv,out in e4m3', explain(model))

    def test_none_is_chosen(self):
        with open(self.found, 'w') as file:
            json.dump({'precisions': [row('fp16', 3)]}, file)
        model = self.optimize(2, error=0.001)
        self.assertNotIn('--precision', self.calls('export')[0])
        self.assertNotIn('e4m3', explain(model))

    def test_several_sizes(self):
        self.assertEqual(precision.choose([[row('fp16', 4), row('fp8', 2)], [row('fp16', 1), row('fp8', 1.5)]]), 'fp8')
        self.assertEqual(precision.choose([[row('fp16', 4), row('fp8', 2)], [row('fp16', 1), row('fp8', None)]]), '')
        self.assertEqual(precision.choose([]), '')
        self.assertEqual(precision.choose([[row('bf16', 1), row('fp8', 2)]]), '')
        self.assertEqual(precision.choose([[row('bf16', 2), row('qkv', 1)]]), 'qkv')

    def test_wrong(self):
        from fuseplan import pack
        packed = pack.pack_layers
        with mock.patch.object(pack, 'pack_layers', lambda stack, dtype: [
                {**layer, 'w2': -layer['w2'], 'wo': -layer['wo']} for layer in packed(stack, dtype)]):
            self.assertRefused("the library's results differ from the model's", self.optimize, precision='fp8',
                               kind=fuseplan.Wrong)

    def test_losses(self):
        """As `fuseplan accuracy` finds them, with the oracle."""
        with tempfile.TemporaryDirectory() as directory:
            path, rows = (os.path.join(directory, name) for name in ('calibration.json', 'rows.safetensors'))
            for name in 'bert', 't5, gated', 'modernbert', 'gpt2':
                if not models.has(name):
                    continue
                with self.subTest(name):
                    model = models.draw(name)
                    fuseplan.calibrate(model, TEXTS, path, tokenizer=Words())
                    fuseplan.write_rows(model, TEXTS, rows, tokenizer=Words())
                    model.save_pretrained(directory)
                    out = program.run('accuracy', '--model', directory, '--input', rows, '--calibration', path,
                                      '--format', 'json', '-q')
                    want = {row['gemms']: row['errors'][-1] for row in json.loads(out)
                            if row['precision'] == 'fp8' and row['weight_scales'] == 'tensor'}
                    stack = precision.calibration.only_stack(model)
                    recorder = precision.calibration.recorder(model, TEXTS, Words())
                    for found in precision.losses_of(stack, recorder, precision.calibration.scales_of(path), torch.float16):
                        self.assertAlmostEqual(found['errors'][0] / want[found['gemms']], 1,
                                               delta=0.03 if name == 'bert' else 0.12)  # of these without the last norm
                    fuseplan.calibrate(model, TEXTS, path, tokenizer=Words())  # nothing is left of it

    def test_refused(self):
        def refused(text, kind=ValueError, **kwargs):
            self.assertRefused(text, self.optimize, kind=kind, **kwargs)
        refused("precision is 'fp9'; expected 'fp8', or of qkv, out, ffn1, ffn2", precision='fp9')
        refused('those in e4m3 with commas between', precision='qkv,qkv')
        refused('give calibration=, a list of sentences', precision='fp8', calibration=None)
        refused('give precision= or error=, too')
        refused('give one of them', precision='fp8', error=0.1)
        refused('beside GEMMs in e4m3 all is fp16 or bf16', precision='fp8', dtype='tf32')
        refused('give time_limit=, too', error=0.1)
        refused('error is 0; expected a number', error=0, time_limit=1)
        refused('error= needs sentences', error=0.1, time_limit=1, calibration='c.json')
        refused('without a tokenizer', fuseplan.Unsupported, precision='fp8', tokenizer=None)
        refused('No such file', OSError, precision='fp8', calibration='none.json')
        path = os.path.join(os.environ['FUSEPLAN_PYTHON_CACHE'], 'calibration.json')
        for text, why in (('[]', 'TypeError'), ('{"version": 1}', 'it has version 1, not 2'), ('{', 'Expecting'),
                          ('{"version": 2, "model": "", "layers": [{"x": {}}]}', "'scale'")):
            with open(path, 'w') as file:
                file.write(text)
            refused('is none that fuseplan.calibrate() wrote: ', precision='fp8', calibration=path)
            refused(why, precision='fp8', calibration=path)
        fuseplan.calibrate(models.draw(num_hidden_layers=2), TEXTS, path, tokenizer=Words())
        refused('has 2 layers, and the model 3', fuseplan.Unsupported, precision='fp8', calibration=path)
        other = models.draw()
        other.encoder.layer[2].output.dense.weight[0, 0] += 1
        fuseplan.calibrate(other, TEXTS, path, tokenizer=Words())
        refused('it is of another model', fuseplan.Unsupported, precision='fp8', calibration=path)
        mock.patch.stopall()
        refused('run on Hopper GPUs, and the model is on cpu', fuseplan.Unsupported, precision='fp8')


if __name__ == '__main__':
    unittest.main()
