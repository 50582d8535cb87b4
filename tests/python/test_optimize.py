"""What a user does with an optimised model, and what is refused."""

import contextlib
import copy
import glob
import importlib.util
import inspect
import io
import os
import pickle
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import torch
import transformers

import common
import fuseplan
import models
from common import SHAPES, run
from fuseplan import cache, explain, finder, library, optimize, program, restore, stats, tuning


def change(function, *args, **kwargs):
    model = models.draw(*args, **kwargs)
    function(model)
    return model


def layer(model, i=0):
    return model.encoder.layer[i]


def widen(one):
    one.intermediate.dense, one.output.dense = torch.nn.Linear(32, 96).eval(), torch.nn.Linear(96, 32).eval()


class Calls(common.Case):

    def setUp(self):
        self.plain, self.ours = common.pair()

    def assertSame(self, batch=2, seq_len=20, real=None, **inputs):
        tokens = torch.randint(10, 64, (batch, seq_len), generator=torch.Generator().manual_seed(1))
        want, got = (m(input_ids=tokens, **inputs).last_hidden_state for m in (self.plain, self.ours))
        self.assertNear(*((got, want) if real is None else (got[real], want[real])))
        return got

    def test_padding(self):
        left = torch.ones(2, 20).long()
        left[1, :9] = 0
        gaps = torch.ones(2, 20).long()
        gaps[0, 3:7] = 0
        for mask in left, left.flip(1), gaps, torch.ones(2, 20).long():
            real = mask.bool()
            got = self.assertSame(real=real, attention_mask=mask)
            self.assertFalse(got[~real].any())

    def test_any_shape(self):
        for shape in (1, 1), (2, 32), (7, 3), (65, 5):
            self.assertSame(*shape)
        self.assertSame(2, 40)
        shapes = stats(self.ours)['encoder.layer']
        self.assertEqual({key: value['plan'] for key, value in shapes['shapes'].items()},
                         {(1, 1): (2, 32), (2, 32): (2, 32), (7, 3): 'in pieces', (65, 5): 'in pieces'})
        self.assertEqual(shapes['plain'], {'more than 32 tokens': 1})

    def test_many_shapes(self):
        """An engine keeps the lengths of the newest alone, which take a GPU's memory."""
        with mock.patch.object(fuseplan.engine, '_LENGTHS', 2):
            for seq_len, lengths in (9, [9, 5]), (10, [10, 5]), (9, [9, 3]), (11, [11, 11]):
                run(self.ours, 2, seq_len, lengths)
        found = stats(self.ours)['encoder.layer']['shapes']
        self.assertEqual([found[2, seq_len]['padding'] for seq_len in (9, 10, 11)], [1 - 12 / 18, None, 0])
        self.assertEqual(tuning.mean_length(self.ours.encoder.layer.stack), 8)  # 2 * 12 + 22 of 6

    def test_asks_for_more(self):
        self.plain, self.ours = common.pair(attn_implementation='eager')
        for name in 'output_hidden_states', 'output_attentions':
            want, got = (run(model, **{name: True})[0] for model in (self.plain, self.ours))
            self.assertNear(got.last_hidden_state, want.last_hidden_state)
            key = name[len('output_'):]
            self.assertEqual(len(got[key]), len(want[key]))
            self.assertNear(got[key][-1], want[key][-1])
        for key in 'hidden_states', 'attentions':
            setattr(self.ours.config, 'output_' + key, True)
            self.assertEqual(len(run(self.ours)[0][key]), 4 if key == 'hidden_states' else 3)
            setattr(self.ours.config, 'output_' + key, False)
        self.assertSame()
        self.assertEqual(stats(self.ours)['encoder.layer']['plain'],
                         {'output_attentions': 2})

    def test_hidden_states(self):
        """Of batches in pieces, padded on either side, and where PyTorch's layers had been asked before."""
        run(self.plain, output_hidden_states=True)
        self.ours = optimize(copy.deepcopy(self.plain), SHAPES)
        for lengths, flip in ((None, False), ([20, 7, 1, 13, 20], False), ([20, 7, 1, 13, 20], True)):
            inputs, real = fuseplan.probe.draw_inputs(self.plain, 5, 20, lengths)
            if flip:
                inputs['attention_mask'], real = inputs['attention_mask'].flip(1), real.flip(1)
            for return_dict in True, False:
                want, got = (m(**inputs, output_hidden_states=True, return_dict=return_dict)
                             for m in (self.plain, self.ours))
                self.assertEqual((type(got), len(got), len(got[2])), (type(want), 3, 4))
                for mine, theirs in zip(got[2], want[2]):
                    self.assertNear(*((mine, theirs) if real is None else (mine[real], theirs[real])))
        self.assertEqual(stats(self.ours)['encoder.layer']['plain'], {})
        self.assertEqual(len(run(self.ours, 2, 40, output_hidden_states=True)[0].hidden_states), 4)
        self.assertEqual(stats(self.ours)['encoder.layer']['plain'], {'more than 32 tokens': 1})
        self.assertIsNone(self.ours(input_ids=torch.ones(2, 9).long()).hidden_states)

    def test_forward(self):
        """Some call it in place of the model: sentence-transformers does."""
        tokens, mask = torch.randint(10, 64, (2, 20)), torch.ones(2, 20).long()
        mask[1, 5:] = 0
        self.assertEqual(inspect.signature(self.ours.forward), inspect.signature(self.plain.forward))
        for other in copy.deepcopy(self.ours), pickle.loads(pickle.dumps(self.ours)):
            self.assertTrue(torch.equal(other.forward(tokens, mask)[0], self.plain(tokens, mask)[0]))
        want, got = (m.forward(tokens, mask, output_hidden_states=True) for m in (self.plain, self.ours))
        for mine, theirs in zip(got.hidden_states, want.hidden_states):
            self.assertNear(mine[mask.bool()], theirs[mask.bool()])
        self.assertEqual(stats(self.ours)['encoder.layer']['plain'], {})
        kept = self.ours.forward
        restore(self.ours)
        self.assertNotIn('forward', vars(self.ours))
        for forward in kept, self.ours.forward:
            self.assertTrue(torch.equal(forward(tokens, mask)[0], self.plain(tokens, mask)[0]))

    @unittest.skipUnless(models.has('eurobert'), 'this version of transformers has none')
    def test_places_by_position(self):
        plain, ours = common.pair('eurobert')
        tokens, places = torch.randint(10, 64, (2, 9)), torch.arange(0, 18, 2)[None]
        self.assertAlike((plain, ours), lambda model: model(tokens, None, places).last_hidden_state)
        self.assertEqual(stats(ours)['layers']['plain'], {'position_ids': 1})

    def test_types_of_tokens(self):
        """Models of transformers 5 without a table for them take and ignore them."""
        if finder.transformers_5() is None:
            self.skipTest('this version refuses them')
        types = torch.ones(2, 20).long()
        for name in 'distilbert', 't5', 'modernbert':
            self.assertAlike(common.pair(name), lambda m: run(m, token_type_ids=types)[0].last_hidden_state)

    def test_wrong_calls(self):
        tokens = torch.ones(2, 8).long()
        self.ours.train()
        self.assertRefused('call model.eval()', self.ours, tokens)
        self.ours.eval()
        with torch.enable_grad():
            self.assertRefused('no gradients', self.ours, tokens, kind=RuntimeError)
        self.assertRefused('has no token', self.ours, tokens, attention_mask=torch.zeros(2, 8), kind=ValueError)
        stack = self.ours.encoder.layer.stack
        self.assertRefused('cu_seq_lens_q', stack, torch.randn(1, 8, 32), cu_seq_lens_q=torch.tensor([0, 3, 8]))
        self.assertRefused('encoder_hidden_states is given', stack, torch.randn(1, 8, 32), None,
                           **{'encoder_hidden_states': torch.randn(1, 8, 32)})
        self.assertRefused('output_attentions is given', stack, torch.randn(1, 8, 32), output_attentions=True)
        self.assertRefused('expected (B,S,D)', stack, torch.randn(8, 32))
        self.assertSame()

    def test_weights(self):
        want = self.plain.state_dict()
        got = self.ours.state_dict()
        self.assertEqual(list(got), list(want))
        self.assertTrue(all(torch.equal(got[name], want[name]) for name in want))
        with tempfile.TemporaryDirectory() as directory:
            self.ours.save_pretrained(directory)
            again = transformers.BertModel.from_pretrained(directory).eval()
        self.assertTrue(torch.equal(run(again)[0].last_hidden_state, run(self.plain)[0].last_hidden_state))
        self.assertRefused('restore(model), load others', self.ours.load_state_dict, want, kind=RuntimeError)
        self.assertRefused('other parts may have changed already', self.ours.load_state_dict, want, kind=RuntimeError)
        self.assertRefused('restore(model), convert', self.ours.encoder.half, kind=RuntimeError)
        self.assertRefused('other parts may have changed already', self.ours.encoder.half, kind=RuntimeError)
        self.ours.float().to('cpu')
        self.assertSame()

    def test_weights_that_change(self):
        """The library has copied them: explain() and tune() say so."""
        self.assertSame()
        self.assertNotIn('weights:', explain(self.ours))
        for model in self.plain, self.ours:
            model.state_dict()['encoder.layer.1.output.dense.bias'].add_(1)
        why = "the model's have changed since optimize() copied them: call it again"
        self.assertIn(f'weights: {why}', explain(self.ours))
        self.assertRefused(f'encoder.layer: {why}', fuseplan.tune, self.ours, progress=False, kind=ValueError)
        optimize(self.ours, SHAPES)
        self.assertSame()
        self.assertNotIn('weights:', explain(self.ours))

    def test_copies(self):
        memory = io.BytesIO()
        torch.save(self.ours, memory)
        memory.seek(0)
        for other in (copy.deepcopy(self.ours), pickle.loads(pickle.dumps(self.ours)),
                      torch.load(memory, weights_only=False)):
            self.assertEqual(len(other.encoder.layer), 3)
            self.assertTrue(torch.equal(run(other)[0].last_hidden_state, run(self.plain)[0].last_hidden_state))

    def test_threads(self):
        lengths, done, both = ([20, 20], [20, 7], [3, 20], [11, 1]), [], threading.Barrier(4)
        wants = [run(self.plain, lengths=one) for one in lengths]

        def meet(*_):  # each thread is in the same place of its own call
            both.wait(60)

        def work(i):
            want, real = wants[i]
            with torch.no_grad():
                for _ in range(10):
                    got = run(self.ours, lengths=lengths[i], output_hidden_states=i == 0)[0]
                    self.assertEqual(len(got.hidden_states or ()), 4 if i == 0 else 0)
                    self.assertNear(got.last_hidden_state[real], want.last_hidden_state[real])
                    self.assertEqual(bool(got.last_hidden_state[~real].any()), False)
            done.append(i)
        hook = self.ours.embeddings.register_forward_hook(meet)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        hook.remove()
        self.assertEqual(sorted(done), [0, 1, 2, 3])

    def test_compile(self):
        compiled = torch.compile(self.ours, backend='aot_eager')
        for lengths in None, [20, 7]:
            (want, real), (got, _) = (run(model, lengths=lengths) for model in (self.plain, compiled))
            got, want = got.last_hidden_state, want.last_hidden_state
            self.assertNear(*((got, want) if real is None else (got[real], want[real])))
        left = torch.arange(20) >= torch.tensor([[0], [13]])
        pooled = compiled(input_ids=torch.ones(2, 20).long(), attention_mask=left.long()).pooler_output
        self.assertEqual(pooled.isnan().all(1).tolist(), [False, True])
        found = stats(self.ours)['encoder.layer']
        self.assertEqual((found['shapes'][2, 20]['calls'], found['plain']), (3, {}))

    def test_interrupted(self):
        def interrupt(*_):
            raise KeyboardInterrupt
        mask = torch.ones(3, 9).long()
        mask[1, 5:] = 0
        for inputs in {'output_hidden_states': True}, {'attention_mask': mask}:
            hook = self.ours.embeddings.register_forward_hook(interrupt)
            with self.assertRaises(KeyboardInterrupt):
                self.ours(input_ids=torch.ones(3, 9).long(), **inputs)
            hook.remove()
            self.assertSame()
        found = stats(self.ours)['encoder.layer']
        self.assertEqual((found['shapes'][2, 20]['calls'], found['plain']), (2, {}))

    def test_explain(self):
        text = explain(self.ours)
        for part in ('encoder.layer: 3 layers post, 2 heads of 16, ffn 64, fp32, sizes (2, 32)', 'never measured',
                     'best known, or default'):
            self.assertIn(part, text)
        stack = 'Stack(encoder.layer: 3 layers post, fp32 on cpu; (2,32) by plan 41115)'
        self.assertIn(f'(0): {stack}\n', repr(self.ours))  # without a time, as none was measured
        self.assertEqual(repr(self.ours.encoder.layer.stack), stack)
        self.assertTrue(repr(optimize(models.draw(), [(1, 8), (2, 8), (3, 32)]).encoder.layer.stack).endswith(
            '; (3,8) by plan 41115; (1,32) by plan 41115; 2 more sizes)'))
        self.assertFalse(any(module.training for module in self.ours.modules()))
        self.assertIn('call optimize() first', str(self.failing(explain, self.plain)))

    def failing(self, function, *args):
        with self.assertRaises(ValueError) as caught:
            function(*args)
        return caught.exception

    def test_again(self):
        other = models.draw('distilbert')
        theirs = optimize(copy.deepcopy(other), SHAPES)  # two models in one process
        optimize(self.ours, [(4, 16)])
        self.assertIn('sizes (4, 16)', explain(self.ours))
        self.assertSame(4, 16)
        self.assertNear(run(theirs)[0].last_hidden_state, run(other)[0].last_hidden_state)
        restore(self.ours.train())
        self.assertIs(type(self.ours.encoder.layer), torch.nn.ModuleList)
        self.assertTrue(all(module.training for one in self.ours.encoder.layer for module in one.modules()))
        self.assertEqual(self.ours.encoder._forward_pre_hooks, {})
        self.ours.half()


class Decoders(common.Case):

    def test_generate(self):
        plain, ours = common.pair('gpt2', head='GPT2LMHeadModel', eos_token_id=0, bos_token_id=0, pad_token_id=0)
        tokens = torch.randint(10, 64, (2, 9))
        want, got = (m.generate(input_ids=tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=6,
                                do_sample=False) for m in (plain, ours))
        self.assertTrue(torch.equal(got, want))
        self.assertGreater(stats(ours)['transformer.h']['plain']['use_cache'], 0)
        self.assertAlike((plain, ours), lambda m: m(input_ids=tokens, use_cache=False).logits)
        self.assertEqual(stats(ours)['transformer.h']['shapes'][2, 9]['calls'], 1)

    def test_padding(self):
        for name in 'gpt2', 'bloom', 'opt':
            plain, ours = common.pair(name)
            mask = torch.ones(2, 12).long()
            mask[1, :5] = 0
            tokens = torch.randint(10, 64, (2, 12))
            for one in mask, mask.flip(1):
                want, got = (m(input_ids=tokens, attention_mask=one, use_cache=False).last_hidden_state[one.bool()]
                             for m in (plain, ours))
                self.assertNear(got, want)

    def test_packed(self):
        plain, ours = common.pair('gpt2')
        tokens, places = torch.randint(10, 64, (2, 12)), torch.tensor([*range(7), *range(5)]).expand(2, 12)
        self.assertAlike((plain, ours), lambda m: m(input_ids=tokens, position_ids=places, use_cache=False)[0])
        self.assertEqual(stats(ours)['h']['plain'], {'position_ids': 1})
        want, got = (m(input_ids=tokens, position_ids=places, attention_mask=torch.ones(2, 12), use_cache=False)[0]
                     for m in (plain, ours))
        self.assertNear(got, want)
        self.assertEqual(stats(ours)['h']['shapes'][2, 12]['calls'], 1)

    def test_masks_of_other_numbers(self):
        ours = optimize(models.draw('bloom'), SHAPES)
        tokens = torch.randint(10, 64, (2, 12))
        for hidden in False, True:
            self.assertRefused('values other than 1 and 0', ours, tokens, attention_mask=torch.full((2, 12), 2),
                               use_cache=False, output_hidden_states=hidden)
        ours(tokens, use_cache=False)

    def test_masks_that_are_not_causal(self):
        cases = [('gpt2', 'h', {'use_cache': False})]
        if finder.transformers_5() is not None:  # earlier versions take masks (B,S) alone
            cases.append(('clip text', 'encoder.layers', {}))
        for name, path, more in cases:
            plain, ours = common.pair(name)
            tokens, mask = torch.randint(10, 64, (2, 12)), torch.ones(2, 1, 1, 12).bool()
            mask[1, ..., 8:] = False
            for one in mask, torch.zeros(mask.shape).masked_fill(~mask, -1e30):
                self.assertAlike((plain, ours), lambda m: m(input_ids=tokens, attention_mask=one, **more)[0])
            self.assertEqual(stats(ours)[path]['plain'], {'attention_mask': 2})

    def test_encoder_of_two(self):
        plain, ours = common.pair('t5', head='T5ForConditionalGeneration', decoder_start_token_id=0)
        tokens = torch.randint(10, 64, (2, 9))
        want, got = (m.generate(input_ids=tokens, max_new_tokens=5, do_sample=False) for m in (plain, ours))
        self.assertTrue(torch.equal(got, want))
        self.assertIn('decoder.block: not replaced', explain(ours))
        self.assertNear(run(ours, seq_len=40)[0].last_hidden_state, run(plain, seq_len=40)[0].last_hidden_state)


class Heads(common.Case):

    def test_heads(self):
        for name, head in (('bert', 'BertForSequenceClassification'), ('roberta', 'RobertaForTokenClassification'),
                           ('vit', 'ViTForImageClassification'), ('electra', 'ElectraForSequenceClassification')):
            plain, ours = common.pair(name, head=head)
            self.assertAlike((plain, ours), lambda model: run(model)[0].logits)

    def test_heads_of_sounds(self):
        """Which ask their models for hidden states."""
        for name, head, weighted in (('wav2vec2', 'Wav2Vec2ForSequenceClassification', False),
                                     ('hubert', 'HubertForSequenceClassification', True)):
            plain = models.draw(name, head=head, use_weighted_layer_sum=weighted)
            ours = optimize(copy.deepcopy(plain), [(2, 49)])
            self.assertAlike((plain, ours), lambda model: run(model)[0].logits)
            self.assertEqual(next(iter(stats(ours).values()))['plain'], {})

    def test_padding_at_token_0(self):
        tokens, mask = torch.randint(10, 64, (2, 9)), torch.ones(2, 9).long()
        mask[1, :4] = 0
        ours = optimize(models.draw(), SHAPES)
        for kwargs, hidden in (({'attention_mask': mask}, [False, True]), ({}, [False, False]),
                               ({'attention_mask': mask, 'output_hidden_states': True}, [False, True])):
            pooled = ours(input_ids=tokens, **kwargs).pooler_output
            self.assertEqual(pooled.isnan().all(1).tolist(), hidden)
        for name, head in ('bert', 'BertForSequenceClassification'), ('roberta', 'RobertaForSequenceClassification'):
            ours = optimize(models.draw(name, head=head), SHAPES)
            self.assertRefused(f'token 0 of sequence 1 is padding, and the head of a {head}', ours, input_ids=tokens,
                               attention_mask=mask)
        plain, ours = common.pair(head='BertForTokenClassification')
        self.assertAlike((plain, ours), lambda model: model(input_ids=tokens, attention_mask=mask).logits[mask.bool()])

    @unittest.skipUnless(models.has('eurobert'), 'this version of transformers has none')
    def test_heads_of_means(self):
        tokens, mask = torch.randint(10, 64, (2, 9)), torch.ones(2, 9).long()
        mask[1, :4] = 0
        plain, ours = common.pair('eurobert', head='EuroBertForSequenceClassification', classifier_pooling='mean')
        self.assertAlike((plain, ours), lambda model: model(input_ids=tokens, attention_mask=mask).logits)
        ours.config.classifier_pooling = 'bos'
        self.assertRefused('token 0 of sequence 1', optimize(ours, SHAPES), input_ids=tokens, attention_mask=mask)

    def test_two_towers(self):
        text, image = (models.MODELS[name][3] for name in ('clip text', 'clip vision'))
        config = transformers.CLIPConfig(text_config=text, vision_config=image, projection_dim=16)
        torch.manual_seed(0)
        plain = models.shake(transformers.CLIPModel(config).eval())
        ours = optimize(copy.deepcopy(plain), SHAPES)
        self.assertEqual(len(stats(ours)), 2)
        self.assertAlike((plain, ours), lambda model: run(model)[0].logits_per_image)
        plain = models.shake(transformers.CLIPForImageClassification(config).eval())  # has one of them
        ours = optimize(copy.deepcopy(plain), SHAPES)
        self.assertAlike((plain, ours), lambda model: run(model)[0].logits)


class Refusals(common.Case):

    def test_models(self):
        def set_int8(model):
            query = layer(model, 1).attention.self.query
            query.weight = torch.nn.Parameter(query.weight.to(torch.int8), requires_grad=False)

        cases = [
            ('a str', 'expected a torch.nn.Module', 'bert'),
            ('no layers', 'no list of layers was found', torch.nn.Linear(2, 2).eval()),
            ('training', 'call model.eval()', models.draw().train()),
            ('a part in training', 'layer 2: output.dropout is in training mode',
             change(lambda m: layer(m, 2).output.dropout.train())),
            ('compiled', 'give the model to optimize() first', torch.compile(models.draw())),
            ('fp64', 'give dtype=torch.float32', models.draw().double()),
            ('int8', 'layer 1: attention.self.query.weight is torch.int8', change(set_int8)),
            ('devices', 'spreads it over 0, cpu',
             change(lambda m: setattr(m, 'hf_device_map', {'embeddings': 'cpu', 'encoder': 0}))),
            ('all on meta', 'layer 0: attention.self.query.weight is on meta', models.draw().to('meta')),
            ('meta', 'layer 2: output.dense.weight is on meta', change(lambda m: layer(m, 2).output.to('meta'))),
            ('hook', 'layer 0: output has a hook',
             change(lambda m: layer(m).output.register_forward_hook(lambda *a: None))),
            ('forward', 'attention.self has a forward() of its own',
             change(lambda m: setattr(layer(m, 1).attention.self, 'forward', lambda *a, **k: None))),
            ('activation', 'its activation is Tanh',
             change(lambda m: [setattr(l.intermediate, 'intermediate_act_fn', torch.nn.Tanh().eval())
                               for l in m.encoder.layer])),
            ('one activation', 'layer 2 has activation relu, and layer 0 gelu',
             change(lambda m: setattr(layer(m, 2).intermediate, 'intermediate_act_fn', torch.nn.ReLU().eval()))),
            ('one place of norms', 'layer 1 has norm post, and layer 0 pre',
             change(lambda m: setattr(m.decoder.layers[1], 'do_layer_norm_before', False), 'opt')),
            ('a wider layer', 'layer 1 has ffn 64, and layer 0 96', change(lambda m: widen(layer(m)))),
            ('one RMS norm', 'others RMS norms',
             change(lambda m: setattr(layer(m, 2).output, 'LayerNorm', torch.nn.RMSNorm(32, 1e-12).eval()))),
            ('eps', 'its norms have eps', change(lambda m: setattr(layer(m).output.LayerNorm, 'eps', 1e-3))),
            ('another version', 'has no output.dense', change(lambda m: delattr(layer(m, 2).output, 'dense'))),
            ('decoder', 'is_decoder is True', models.draw(is_decoder=True)),
            ('parametrized', 'remove parametrizations', change(
                lambda m: torch.nn.utils.parametrizations.weight_norm(layer(m).output.dense).eval())),
            ('windows', 'one kind of local layers', self.draw_windows()),
        ] + [(kind, text, models.draw_bare(kind)) for kind, text in self.UNFIT]
        for what, text, model in cases:
            with self.subTest(what):
                before = repr(model)
                self.assertRefused(text, optimize, model, SHAPES)
                self.assertEqual(repr(model), before)

    # Models of transformers, and what their layers have that no chain computes.
    UNFIT = (('Deberta', 'relative positions'), ('DebertaV2', 'relative positions'), ('GPTJ', 'a parallel residual'),
             ('GPTNeoX', 'a parallel residual'), ('Falcon', 'a parallel residual'), ('Gemma', '1 + weight'),
             ('Gemma2', 'branches that end in norms'), ('Mixtral', 'experts'), ('Qwen3', 'norms of queries and keys'),
             ('Qwen3Moe', 'experts'), ('Bart', 'BartDecoderLayer, with attention to the encoder'))

    def draw_windows(self):
        """Layers that see all tokens at 0, 2 and 3."""
        model = models.draw('modernbert')
        name, value = ('local_attention', (-1, -1)) if hasattr(model.layers[2].attn, 'local_attention') else (
            'sliding_window', None)
        setattr(model.layers[2].attn, name, value)
        return model

    def test_longer_than_any_plan_where_layers_are_of_two_kinds(self):
        plain, ours = common.pair('modernbert')
        (want, real), (got, _) = (run(model, 2, seq_len=40, lengths=[40, 9]) for model in (plain, ours))
        self.assertNear(got.last_hidden_state[real], want.last_hidden_state[real])
        self.assertEqual(next(iter(stats(ours).values()))['plain'], {'more than 32 tokens': 1})

    @unittest.skipIf(finder.transformers_5() is None, 'this version takes masks (B,S) alone')
    def test_masks_without_windows(self):
        plain, ours = common.pair('modernbert')
        tokens, tokens_of = torch.randint(10, 64, (2, 20)), torch.ones(2, 20).bool()
        tokens_of[1, 12:] = False
        whole = tokens_of[:, None, None, :].expand(2, 1, 20, 20)
        for mask in (whole, torch.zeros(whole.shape).masked_fill(~whole, torch.finfo(torch.float32).min),
                     {'full_attention': whole, 'sliding_attention': whole}):
            self.assertAlike((plain, ours), lambda m: m(input_ids=tokens, attention_mask=mask)[0][tokens_of])
        self.assertEqual(stats(ours)['layers']['plain'], {'attention_mask': 3})

    def test_adapters(self):
        try:
            import peft
        except ImportError:
            self.skipTest('peft is not installed')
        lora = peft.LoraConfig(target_modules=['query'], r=2)
        made = peft.get_peft_model(models.draw(), lora).eval()
        self.assertRefused('call merge_and_unload()', optimize, made, SHAPES)
        self.assertRefused('call merge_and_unload()', optimize,
                           change(lambda m: (peft.inject_adapter_in_model(lora, m), m.eval())), SHAPES)
        merged = peft.get_peft_model(models.draw(), lora).eval().merge_and_unload()
        self.assertIs(optimize(merged, SHAPES), merged)

    def test_types(self):
        model = models.draw()
        self.assertRefused('fp16', optimize, model, SHAPES, dtype=torch.float16, kind=program.ProgramError)
        self.assertRefused('dtype is torch.int8', optimize, model, SHAPES, dtype=torch.int8, kind=ValueError)
        self.assertRefused('expected pairs', optimize, model, [(1,)], kind=ValueError)
        self.assertRefused('NaN or infinite', optimize, change(
            lambda m: layer(m, 1).output.dense.weight.fill_(float('nan'))), SHAPES, kind=ValueError)
        self.assertEqual(type(model.encoder.layer), torch.nn.ModuleList)

    def test_arguments(self):
        model = models.draw()
        for text, kind, arguments in (
                ('shapes are [8, 64]; expected pairs (batch, tokens)', ValueError, {'shapes': [8, 64]}),
                ("shapes are ['x']; expected pairs", ValueError, {'shapes': 'x'}),
                ('shapes are 8; expected pairs', ValueError, {'shapes': 8}),
                ('shapes are [(8.5, 64)]; expected pairs', ValueError, {'shapes': [(8.5, 64)]}),
                ('shapes are [(8, 0)]; expected pairs', ValueError, {'shapes': [(8, 0)]}),
                ("time_limit is 'a'; expected seconds", ValueError, {'time_limit': 'a'}),
                ('time_limit is -1; expected seconds', ValueError, {'time_limit': -1}),
                ('time_limit is nan; expected seconds', ValueError, {'time_limit': float('nan')}),
                ('dtype is []; expected fp32, tf32, fp16, bf16', ValueError, {'dtype': []}),
                ('dtype is half; expected fp32', ValueError, {'dtype': 'half'}),
                ('mean_length is -1; expected a whole number', ValueError, {'mean_length': -1}),
                ('mean_length is 2.5; expected a whole number', ValueError, {'mean_length': 2.5}),
                ('progress is 5; expected True, False or a function', ValueError, {'progress': 5}),
                ('example is a int; expected a dict', TypeError, {'example': 5}),
                ('calibration is a int; expected a list of str', TypeError, {'precision': 'fp8', 'calibration': 5})):
            with self.subTest(text), mock.patch.object(fuseplan.precision, 'check_place'):
                self.assertRefused(text, optimize, model, **{'shapes': SHAPES, **arguments}, kind=kind)
                self.assertEqual(type(model.encoder.layer), torch.nn.ModuleList)
        for function in optimize, restore, explain, stats, fuseplan.tune, fuseplan.tune_in_background:
            self.assertRefused('the model is a builtins.NoneType; expected a torch.nn.Module', function, None)
        self.assertRefused('call optimize() first', fuseplan.tune_in_background, model, kind=ValueError)
        optimize(model, SHAPES)
        for function in fuseplan.tune, fuseplan.tune_in_background:
            self.assertRefused("time_limit is 'a'; expected seconds", function, model, 'a', kind=ValueError)
            self.assertRefused('most is 0; expected a whole number', function, model, most=0, kind=ValueError)
        self.assertRefused('progress is 5', fuseplan.tune, model, progress=5, kind=ValueError)

    def test_other_calls_than_are_drawn(self):
        model = models.draw()
        self.assertRefused('a BertEncoder fails on what fuseplan drew for it', optimize, model.encoder, SHAPES)
        for other in models.draw(head='BertForMultipleChoice'), torch.nn.Sequential(models.draw()).eval():
            self.assertRefused('give optimize() the arguments of a call, example', optimize, other, SHAPES)
        x = torch.randn(2, 32, 32)
        want = model.encoder(x)[0]
        optimize(model.encoder, SHAPES, example={'hidden_states': x})
        self.assertNear(model.encoder(x)[0], want)

    def test_wrong_results(self):
        model = models.draw()
        module, about = library.get(fuseplan.finder.find_stacks(model)[0][0], 'fp32', SHAPES)
        pack = fuseplan.pack.pack_layers
        try:
            fuseplan.pack.pack_layers = lambda stack, dtype: [
                {**weights, 'wo': weights['wo'] * 1.01} for weights in pack(stack, dtype)]
            self.assertRefused('the model is as it was', optimize, model, SHAPES, kind=fuseplan.Wrong)
        finally:
            fuseplan.pack.pack_layers = pack
        self.assertEqual(type(model.encoder.layer), torch.nn.ModuleList)
        self.assertEqual(model.encoder._forward_pre_hooks, {})

    def test_a_model_that_is_inexact_itself(self):
        """Of T5 in bf16, whose layers are far from the same in fp32."""
        model = models.draw('t5').bfloat16()
        stack = fuseplan.finder.find_stacks(model)[0][0]
        calls = [run[0] for run in fuseplan.replace._record(model, [stack], None, SHAPES)]
        made = fuseplan.stack.Stack(stack, None, calls)
        exact = models.draw('t5')
        for share, good in (0.9, True), (1.2, True), (1.4, False), (float('nan'), False):
            found = []
            for call in fuseplan.replace._record(exact, fuseplan.finder.find_stacks(exact)[0], None, SHAPES):
                found.append(call[0].y)
            found = [want + (call.y - want) * share for want, call in zip(found, calls)]
            with mock.patch.object(type(made), '_run', lambda *a, **k: (found.pop(0),)):
                self.assertEqual(fuseplan.replace._is_as_near(made, calls), good, share)

    def test_results_that_are_no_numbers(self):
        compare = fuseplan.replace._compare
        for at in 0, 1:
            found = [float('nan') if i == at else 0.0 for i in range(2)]
            try:
                fuseplan.replace._compare = lambda stack, call: compare(stack, call) + found.pop(0)
                self.assertRefused('by nan', optimize, models.draw(), SHAPES, kind=fuseplan.Wrong)
            finally:
                fuseplan.replace._compare = compare

    def test_again(self):
        model = models.draw('vit')
        self.assertRefused('with 17 tokens, and shapes have at most 16', optimize, model, [(2, 16)], kind=ValueError)
        self.assertIn('call optimize() first', str(Calls.failing(self, explain, model)))
        model = optimize(models.draw(), SHAPES)
        before = run(model)[0].last_hidden_state
        self.assertRefused('mean_length is 33', optimize, model, SHAPES, mean_length=33, kind=ValueError)
        self.assertIn('sizes (2, 32)', explain(model))  # as it was
        self.assertTrue(torch.equal(run(model)[0].last_hidden_state, before))
        self.assertEqual(len(model.encoder._forward_pre_hooks), 1)
        layers = torch.nn.ModuleList(models.draw().encoder.layer).eval()
        self.assertIn('sizes (4, 16)', explain(optimize(optimize(layers, SHAPES), [(4, 16)])))

    def test_shapes(self):
        for name, sizes in ('bloom', [32, 128, 512]), ('bert', [32, 128, 130]), ('vit', [17]), ('whisper', [20]):
            model, asked = models.draw(name), []
            get = library.get
            try:
                library.get = lambda stack, dtype, shapes, **wanted: asked.extend(shapes) or get(stack, dtype, [
                    (2, max(s for _, s in shapes))], **wanted)
                optimize(model)
            finally:
                library.get = get
            self.assertEqual(sorted({s for _, s in asked}), sizes)
            self.assertEqual(sorted({b for b, _ in asked}), [1, 8, 64])


class Program(unittest.TestCase):

    def find_tied(self, pid):
        """Children of a process that a signal tells of its end."""
        for children in glob.glob(f'/proc/{pid}/task/*/children'):
            with open(children, encoding='utf-8') as file:
                for child in file.read().split():
                    for info in glob.glob(f'/proc/{child}/fdinfo/*'):
                        with contextlib.suppress(OSError), open(info, encoding='utf-8') as fields:
                            if int(re.search(r'flags:\s*(\d+)', fields.read())[1], 8) & os.O_ASYNC:
                                yield int(child)

    def test_ends_with_the_process_that_started_it(self):
        """Also where that is killed, and where a thread of it waits."""
        code = 'import sys, threading; from fuseplan import program\n'
        code += 'threading.Thread(target=program.run, args=["x"], kwargs={"progress": %s}).start()'
        with tempfile.TemporaryDirectory() as directory:
            path, deadline = os.path.join(directory, 'fuseplan'), time.monotonic() + 60
            with open(path, 'w', encoding='utf-8') as file:
                file.write('#!/bin/sh\nexec sleep 100\n')
            os.chmod(path, 0o755)
            for progress in 'None', 'print':
                with subprocess.Popen([sys.executable, '-c', code % progress], env={**os.environ, 'FUSEPLAN': path}) as of:
                    found = []
                    while not found and time.monotonic() < deadline:
                        found = [*self.find_tied(of.pid)]
                    handle = os.pidfd_open(found[0]) if found else -1
                    of.kill()
                self.assertTrue(found, f'with progress {progress} nothing would tell the program')
                self.assertTrue(select.select([handle], [], [], 60)[0], f'with progress {progress} it lives on')
                os.close(handle)


class Cache(common.Case):

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.before = os.environ['FUSEPLAN_PYTHON_CACHE']
        os.environ['FUSEPLAN_PYTHON_CACHE'] = self.directory.name

    def tearDown(self):
        os.environ['FUSEPLAN_PYTHON_CACHE'] = self.before
        self.directory.cleanup()

    def test_damaged(self):
        optimize(models.draw(), SHAPES)
        (request,) = [name[:-5] for name in os.listdir(self.directory.name) if name.endswith('.json')]
        path, _ = cache.find(request)
        for name in 'encoder.py', 'manifest.json', 'libencoder.so':
            with open(os.path.join(path, name), 'rb') as file:
                whole = file.read()
            for damaged in whole[:-1], None, whole:
                os.remove(os.path.join(path, name))  # this process still has it
                if damaged is not None:
                    with open(os.path.join(path, name), 'wb') as file:
                        file.write(damaged)
                self.assertEqual(cache.find(request) is None, damaged is not whole, name)
                if damaged is None:
                    with open(os.path.join(path, name), 'wb'):
                        pass
        with open(os.path.join(self.directory.name, request + '.json'), 'w', encoding='utf-8') as file:
            file.write('{')
        self.assertIsNone(cache.find(request))

        def fail(path):
            os.makedirs(path)
            raise OSError('disk full')
        with self.assertRaises(OSError):
            cache.store(request, fail)
        self.assertEqual([name for name in os.listdir(self.directory.name) if name.startswith('made-')], [])

    def test_another_place(self):
        """Is advised where a cache cannot be: it is a file, or holds no files."""
        file = os.path.join(self.directory.name, 'file')
        with open(file, 'w', encoding='utf-8'):
            pass
        for place in file, '/proc/self/task':
            with mock.patch.dict(os.environ, FUSEPLAN_PYTHON_CACHE=place):
                self.assertRefused('; FUSEPLAN_PYTHON_CACHE names another place for libraries: ' + repr(place)[:-1],
                                   optimize, models.draw(), SHAPES, kind=OSError)

    def test_no_home(self):
        """Where there is none, no directory is named "~"."""
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.directory.name)
        with mock.patch.dict(os.environ), mock.patch('pwd.getpwuid', side_effect=KeyError):
            for name in 'HOME', 'XDG_CACHE_HOME', 'FUSEPLAN_PYTHON_CACHE':
                os.environ.pop(name, None)
            self.assertRefused('HOME is not set, and this user has no home; FUSEPLAN_PYTHON_CACHE names another',
                               cache.directory, kind=OSError)
        self.assertEqual(os.listdir(self.directory.name), [])

    def test_threads(self):
        """That load a library at once load it once."""
        optimize(models.draw(), SHAPES)
        path, = glob.glob(os.path.join(self.directory.name, '*', 'encoder.py'))
        path, found, both = os.path.dirname(path), [], threading.Barrier(2)
        make = importlib.util.module_from_spec

        def meet(spec):  # both threads, if both make a module
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(1)
            return make(spec)
        with mock.patch.dict(library._loaded, clear=True), mock.patch('importlib.util.module_from_spec', meet):
            threads = [threading.Thread(target=lambda: found.append(library.load(path))) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual((len(found), len(set(found))), (2, 1))

    def test_search(self):
        events = []
        model = models.draw(num_hidden_layers=1)
        optimize(model, [(1, 8)])
        self.assertIn('never measured', explain(model))
        optimize(model, [(1, 8)], time_limit=20, progress=events.append)
        self.assertNotIn('never measured', explain(model))
        self.assertIn('searched for 20 s', explain(model))
        plan, = model.encoder.layer.stack.engine.plans
        self.assertIn(f"plan {plan['value']}, {plan['us_per_layer']:.1f} us a layer)", repr(model))
        self.assertIn(f", {plan['us_per_layer']:.1f} us a layer, ", explain(model))
        self.assertEqual((events[0]['event'], events[-1]['event']), ('start', 'end'))

    def test_build_is_shown(self):
        """In a line that goes, on a terminal."""
        for terminal, line in (True, 'fuseplan export: builds the library'), (True, None), (False, None):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                said.isatty = lambda terminal=terminal: terminal
                optimize(models.draw(), SHAPES if terminal else [(1, 8)])
            self.assertEqual(said.getvalue(), f'\r{line}\r{" " * len(line)}\r' if line else '')

    def test_search_without_plans(self):
        """Is said, and another call searches again."""
        calls, run_program = [], program.run

        def run_no_search(*words, **kwargs):
            if words[0] != 'search':
                return run_program(*words, **kwargs)
            calls.append(words)
            raise program.ProgramError('', program.NOTHING_KNOWN)
        with mock.patch.object(program, 'run', run_no_search), mock.patch('warnings.warn') as warn:
            for _ in range(2):
                model = optimize(models.draw(), SHAPES, time_limit=3, progress=False)
        said = [call.args[0] for call in warn.call_args_list if 'search' in call.args[0]]
        self.assertEqual((len(calls), len(said)), (2, 2))
        self.assertIn('size 1 of 1 found no plan in 3 s', said[0])
        self.assertIn('best known, or default', explain(model))

    def test_mean_length(self):
        plain = models.draw()
        ours = optimize(copy.deepcopy(plain), SHAPES, mean_length=9)
        want, got = (run(model, 2, 20, [20, 3]) for model in (plain, ours))
        self.assertNear(got[0].last_hidden_state[got[1]], want[0].last_hidden_state[got[1]])
        engine = ours.encoder.layer.stack.engine
        self.assertNotIn(b'lengths=full', engine.module._lib.encoder_plan_at(0).contents.workload)
        self.assertRefused('mean_length is 33; expected 1 to 32', optimize, ours, SHAPES, mean_length=33,
                           kind=ValueError)
        fuseplan.tune(ours, time_limit=2, most=1, progress=False)
        self.assertNear(run(ours)[0].last_hidden_state, run(plain)[0].last_hidden_state)

    def test_tune(self):
        plain = models.draw(num_hidden_layers=1)
        ours = optimize(copy.deepcopy(plain), [(2, 32)])
        self.assertEqual(fuseplan.tune(ours), [])
        for batch, seq_len in (3, 20), (3, 19), (1, 8):
            run(ours, batch, seq_len)
        done = fuseplan.tune_in_background(ours, time_limit=20, most=1)
        run(ours)
        done.join()
        self.assertIsNone(done.error)
        self.assertEqual(done.shapes, [(4, 32)])
        self.assertIn('(4,32): plan', explain(ours))
        self.assertNotIn('never measured', explain(ours).split('(4,32): ')[1])
        self.assertNear(run(ours)[0].last_hidden_state, run(plain)[0].last_hidden_state)

    def test_tune_for_lengths(self):
        plain = models.draw(num_hidden_layers=1)
        ours = optimize(copy.deepcopy(plain), [(2, 32)])
        run(ours, 4, 16, [2, 5, 16, 1])
        run(ours, 4, 16)
        self.assertEqual(stats(ours)['encoder.layer']['shapes'][4, 16]['padding'], 0)
        run(ours, 4, 16, [2, 5, 6, 1])
        self.assertEqual(stats(ours)['encoder.layer']['shapes'][4, 16]['padding'], 50 / 64)
        fuseplan.tune(ours, time_limit=2, most=1, progress=False)
        module = ours.encoder.layer.stack.engine.module
        for i in range(module.info.plans):
            found = module._lib.encoder_plan_at(i).contents
            lengths = re.search(rb'lengths=([0-9,]*)', found.workload)[1].split(b',')
            self.assertAlmostEqual(sum(map(int, lengths)) / found.batch, 3.5, delta=0.5)  # the mean is 3.5
        want, got = (run(model, 4, 16, [2, 5, 6, 1]) for model in (plain, ours))
        self.assertNear(got[0].last_hidden_state[got[1]], want[0].last_hidden_state[got[1]])

    def test_interrupted(self):
        def interrupt(event):
            raise KeyboardInterrupt
        model = optimize(models.draw(num_hidden_layers=1), SHAPES)
        with self.assertRaises(KeyboardInterrupt):
            optimize(model, [(1, 8)], time_limit=60, progress=interrupt)
        self.assertIn('sizes (2, 32)', explain(model))  # as it was
        self.assertEqual([name for name in os.listdir(self.directory.name) if name.startswith('made-')], [])

    def test_failed_build(self):
        model = models.draw()
        os.environ['MAKEFLAGS'] = 'CC=/nowhere/cc'
        try:
            self.assertRefused('/nowhere/cc', optimize, model, SHAPES, kind=program.ProgramError)
        finally:
            del os.environ['MAKEFLAGS']
        self.assertEqual([name for name in os.listdir(self.directory.name) if not name.endswith('.lock')], [])
        self.assertIs(type(model.encoder.layer), torch.nn.ModuleList)

    def test_search_again(self):
        model, search, searched = models.draw(), library._search, []
        try:
            library._search = lambda parts, time_limit, progress, wish: searched.append(time_limit) or [[]]
            kept = self.place_of(optimize(model, SHAPES))
            for time_limit in 2, 1, None, 2, 3:
                optimize(model, SHAPES, time_limit)
        finally:
            library._search = search
        self.assertEqual(searched, [2, 3])
        self.assertIn('searched for 3 s', explain(model))
        self.assertEqual(self.place_of(model), kept)  # of the same plans: no process that loads it finds it gone

    def place_of(self, model):
        path = os.path.join(os.path.dirname(model.encoder.layer.stack.engine.module._path), 'libencoder.so')
        return path, os.stat(path).st_ino

    def test_no_program(self):
        for named in '/nowhere/fuseplan', self.directory.name:
            with mock.patch.dict(os.environ, FUSEPLAN=named):
                self.assertRefused(f"'{named}', which FUSEPLAN names, is no program", optimize, models.draw(), SHAPES,
                                   kind=program.ProgramError)

    def test_doctor(self):
        found = fuseplan.doctor()
        self.assertEqual((found['program'], found['torch']), (program.find(), torch.__version__))
        self.assertIn('worker', [check['subject'] for check in found['checks']])
        path = os.path.join(self.directory.name, 'broken')
        with open(path, 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\n[ "$1" != --version ] || exit 0\necho fuseplan: no worker >&2\nexit 1\n')
        os.chmod(path, 0o755)
        with mock.patch.dict(os.environ, FUSEPLAN=path):
            self.assertRefused('no worker', fuseplan.doctor, kind=program.ProgramError)


if __name__ == '__main__':
    unittest.main()
