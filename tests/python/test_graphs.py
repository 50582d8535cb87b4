"""Graphs of whole calls, by a kind of graph that runs on the CPU: it calls what it captured again, on the same inputs,
and writes the same results.  What a GPU does is tested by tests/cuda/python.py."""

import copy
import ctypes
import pickle
import threading
import unittest
from unittest import mock

import torch

import common
import fuseplan
import models
from common import run
from fuseplan import capture, graphs, masks, optimize, restore, results, stats, tuning

SHAPES = [(4, 64)]


def copy_bytes(to, source, size, stream):
    ctypes.memmove(to, source, size)
    return 0


def copy_rows(by, stream):
    rows = by._obj
    for i in range(rows.height):
        ctypes.memmove(rows.dst + i * rows.dst_pitch, rows.src + i * rows.src_pitch, rows.width)
    return 0


class End(capture.End):
    """Of a graph that reads t, which gets a copy in each replay, or writes it, which is then copied."""
    status = 0

    def __init__(self, t, side):
        self.led, self.side = t.data_ptr(), side
        super().__init__(capture.Copy(**{side: self.led}, width=t.numel() * t.element_size()), side, self.point)

    def point(self, by):
        address = getattr(by._obj, self.side)
        if self.status == 0 or address == self.own:
            self.led = address
            return 0
        return self.status

    def copy(self, side):
        if self.led != self.own and side == self.side:
            ctypes.memmove(*((self.own, self.led) if side == 'src' else (self.led, self.own)), self.bytes)


class OnCpu:
    made = []  # all of them
    empty = staticmethod(torch._C._dynamo.guards._empty_strided_cpu)

    @staticmethod
    def new_pool():
        return object()

    @staticmethod
    def current():
        return None

    @staticmethod
    def mover(t, takes):
        return capture.mover(t, takes, copy_bytes, copy_rows)

    @staticmethod
    def wait(device):
        pass

    @staticmethod
    def is_captured():
        return False

    class Order:

        def __init__(self, device):
            pass

        def begin(self):
            pass

        def end(self):
            pass

    def end(self, t):
        return self.ends.get(t.data_ptr())

    def __init__(self, fn, inputs, results, device, pool):
        recorder = capture.Recorder()
        recorder.warm(fn)
        self.fn, self.result = fn, recorder.capture(fn)
        self.ends = {t.data_ptr(): End(t, side) for of, side in ((inputs, 'src'), (results, 'dst')) for t in of}
        OnCpu.made.append(self)

    def replay(self):
        for end in self.ends.values():
            end.copy('src')
        into, found = [], []
        with torch.inference_mode(False), torch.no_grad():
            results.builder(self.result, into)
            results.builder(self.fn(), found)
            for t, new in zip(into, found):
                t.copy_(new)
        for end in self.ends.values():
            end.copy('dst')


def read_as_on_gpu(found, x, causal, contiguous, _):
    return masks._read_on_device(found, x, causal, contiguous)


def draw_tokens(batch, seq_len, seed=1):
    return torch.randint(10, 64, (batch, seq_len), generator=torch.Generator().manual_seed(seed))


def right(batch, seq_len):
    """A mask (B,S) with padding on the right."""
    return (torch.arange(seq_len) < torch.linspace(1, seq_len, batch).int()[:, None]).long()


@unittest.skipUnless(common.transformers.__version__ >= '5', 'graphs are of models of transformers 5')
class Case(common.Case):

    def setUp(self):
        OnCpu.made.clear()
        for patch in (mock.patch.dict(graphs.kinds, cpu=OnCpu), mock.patch.object(masks, 'read', read_as_on_gpu),
                      mock.patch.object(masks, 'find_odd', masks._find_odd_on_device)):
            patch.start()
            self.addCleanup(patch.stop)

    def optimized(self, plain, shapes=SHAPES, **kwargs):
        return optimize(copy.deepcopy(plain), shapes, **kwargs)

    def pair(self, *args, **kwargs):
        plain = models.draw(*args, **kwargs)
        return plain, self.optimized(plain)

    def replays(self, model):
        return sum(shape['replays'] for stack in stats(model).values() for shape in stack['shapes'].values())


class Models(Case):

    def setUp(self):
        super().setUp()
        self.plain = models.draw()
        self.ours = self.optimized(self.plain)

    def assertSame(self, batch=2, seq_len=20, ours=None, plain=None, seed=1, **inputs):
        tokens = draw_tokens(batch, seq_len, seed)
        want, got = (m(input_ids=tokens, **inputs) for m in (plain or self.plain, ours or self.ours))
        real = inputs.get('attention_mask', torch.ones(batch, seq_len)).bool()
        self.assertEqual((type(got), list(got), len(got.to_tuple())), (type(want), list(want), len(want.to_tuple())))
        self.assertIsNone(got.attentions)
        self.assertIs(got.last_hidden_state, got[0])
        self.assertIs(got['last_hidden_state'], got[0])
        self.assertNear(got[0][real], want[0][real])
        if real[:, 0].all() and 'pooler_output' in want:
            self.assertNear(got.pooler_output, want.pooler_output)
        return got

    def test_third_call_captures(self):
        for i, replays in enumerate((0, 0, 1, 2)):
            self.assertSame(seed=i)
            self.assertEqual((len(OnCpu.made), self.replays(self.ours)), (int(i > 1), replays))
        self.assertEqual(stats(self.ours)['encoder.layer']['shapes'][2, 20]['calls'], 4)
        self.assertIn('CUDA graphs: 1 with', fuseplan.explain(self.ours))

    def test_lengths_share_a_graph(self):
        for seq_len in 17, 32, 20, 31, 17, 32:
            for mask in right(3, seq_len), right(3, seq_len).flip(1), torch.ones(3, seq_len).long():
                got = self.assertSame(3, seq_len, attention_mask=mask)
                self.assertFalse(got[0][~mask.bool()].any())
        self.assertEqual((len(OnCpu.made), self.replays(self.ours)), (1, 16))

    def test_lengths_without_mask(self):
        for seq_len in 17, 18, 31, 30, 17, 32, 32, 32, 32:
            self.assertSame(3, seq_len, seed=seq_len)
        self.assertEqual(len(OnCpu.made), 2)  # that of 32 tokens has no lengths
        self.assertEqual(self.replays(self.ours), 5)

    def test_padding_of_replays(self):
        """Is known of the newest call of a shape, in all forms of a mask."""
        for seq_len in 20, 32:
            whole, few = torch.ones(2, seq_len).long(), (torch.arange(seq_len) < torch.tensor([[1], [3]])).long()
            added = torch.zeros(2, 1, 1, seq_len).masked_fill(few[:, None, None] == 0, -1e30)
            for mask, padding in (whole, 0), (few, 1 - 2 / seq_len), (None, 0), (added, 1 - 2 / seq_len):
                for of in (whole if mask is added else mask), mask, mask, mask, mask:
                    self.ours(draw_tokens(2, seq_len), of)
                self.assertAlmostEqual(stats(self.ours)['encoder.layer']['shapes'][2, seq_len]['padding'], padding)
        self.assertEqual(tuning.mean_length(self.ours.encoder.layer.stack), 2)
        self.assertGreater(self.replays(self.ours), 20)

    def test_strided_inputs(self):
        for seed in range(5):
            tokens = draw_tokens(20, 3, seed).t()
            mask = right(3, 40)[:, ::2]
            want, got = (m(input_ids=tokens, attention_mask=mask)[0][mask.bool()] for m in (self.plain, self.ours))
            self.assertNear(got, want)
        self.assertEqual(self.replays(self.ours), 3)

    def test_copies_that_fail(self):
        for _ in range(3):
            self.assertSame()
        with mock.patch(f'{__name__}.copy_rows', lambda *a: 700):
            self.assertSame()  # a way that was made keeps its function
            self.assertRefused('error 700', self.ours, draw_tokens(2, 21), kind=RuntimeError)

    def test_in_place(self):
        """A graph reads and writes a call's own tensors where it can, and where CUDA lets it."""
        for status in 0, 1:
            End.status = status
            self.addCleanup(setattr, End, 'status', 0)
            self.ours = self.optimized(self.plain)
            OnCpu.made.clear()
            for seq_len in 32, 32, 32, 32, 31, 32, 32:
                tokens = draw_tokens(2, seq_len, len(OnCpu.made) + seq_len)
                mask = right(2, seq_len)
                self.assertAlike((self.plain, self.ours), lambda m: m(tokens, mask)[0][mask.bool()])
                if OnCpu.made:
                    led = sum(end.led != end.own for end in OnCpu.made[-1].ends.values())
                    self.assertEqual(led, status == 0 and (4 if seq_len == 32 else 1))  # what is pooled is always whole
            self.assertEqual(len(OnCpu.made), 1)

    def test_results_are_kept(self):
        kept = [(self.assertSame(seed=i), i) for i in range(6)]
        for got, i in kept:
            self.assertNear(got[0], self.plain(input_ids=draw_tokens(2, 20, i))[0])
        for got, _ in kept:
            self.assertTrue(got[0].is_contiguous())
            got[0].fill_(7)
        self.assertSame()

    def test_inference_mode(self):
        for mode in (torch.inference_mode, torch.no_grad) * 4:
            with mode():
                self.assertSame(seq_len=19, attention_mask=right(2, 19))
        self.assertEqual(self.replays(self.ours), 6)

    def test_arguments(self):
        tokens = draw_tokens(2, 32)
        for kwargs in ({'position_ids': torch.arange(32)[None]}, {'output_attentions': True}, {'inputs_embeds': torch.randn(2, 32, 32), 'input_ids': None}):
            plain, ours = self.pair(attn_implementation='eager')
            for _ in range(4):
                want, got = (m(**{'input_ids': tokens, **kwargs}) for m in (plain, ours))
                self.assertNear(got[0], want[0])
                self.assertEqual(list(got), list(want))
            self.assertEqual(self.replays(ours), 0)
        for _ in range(4):
            got = self.ours(tokens, right(2, 32), return_dict=False)
        self.assertIs(type(got), tuple)
        self.assertNear(got[0][right(2, 32).bool()], self.plain(tokens, right(2, 32))[0][right(2, 32).bool()])
        self.assertEqual(self.replays(self.ours), 2)
        for seq_len in 20, 31, 20, 32:
            mask = right(2, seq_len)
            want, got = (m(tokens[:, :seq_len], mask, output_hidden_states=True) for m in (self.plain, self.ours))
            self.assertEqual(len(got.hidden_states), 4)
            for mine, theirs in zip(got.hidden_states, want.hidden_states):
                self.assertNear(mine[mask.bool()], theirs[mask.bool()])
            self.assertIs(got.hidden_states[-1], got[0])
        self.assertEqual(self.replays(self.ours), 4)
        for _ in range(4):
            self.ours.forward(tokens)
        self.assertEqual(self.replays(self.ours), 6)

    def test_what_no_graph_runs(self):
        for _ in range(4):
            self.assertSame()
        count = self.replays(self.ours)
        with torch.autocast('cpu', dtype=torch.bfloat16, enabled=False):
            self.assertSame()
        with mock.patch.object(torch, 'is_autocast_enabled', lambda *_: True):
            self.assertSame()
        with mock.patch.object(OnCpu, 'is_captured', lambda: True):
            self.assertSame()
        with torch.enable_grad():
            self.assertRefused('no gradients', self.ours, draw_tokens(2, 20), kind=RuntimeError)
        self.ours.train()
        self.assertRefused('call model.eval()', self.ours, draw_tokens(2, 20))
        self.ours.eval()
        self.assertEqual(self.replays(self.ours), count + 1)

    def test_hooks(self):
        for _ in range(3):
            self.assertSame()
        seen = []
        hook = self.ours.embeddings.LayerNorm.register_forward_hook(lambda *a: seen.append(1))
        self.assertSame()
        self.assertSame()
        hook.remove()
        self.assertEqual((len(seen), self.replays(self.ours)), (2, 1))
        self.assertSame()
        self.assertEqual(self.replays(self.ours), 2)
        every = torch.nn.modules.module.register_module_forward_hook(lambda *a: seen.append(1))
        self.assertSame()
        every.remove()
        self.assertEqual(self.replays(self.ours), 2)
        self.assertGreater(len(seen), 2)

    def test_changes(self):
        """Of what is around the layers; layers keep their weights."""
        def widen(model):
            model.embeddings.LayerNorm = torch.nn.LayerNorm(32, 1e-12).eval()

        def assign(model):
            model.pooler.dense.weight.data = model.pooler.dense.weight.data * 2

        def write(model):
            model.embeddings.word_embeddings.weight.mul_(0.5)

        def replace(model):
            model.embeddings.word_embeddings.weight = torch.nn.Parameter(
                model.embeddings.word_embeddings.weight * 2, requires_grad=False)

        def patch(model):
            embeddings = model.embeddings
            embeddings.forward = lambda *a, **k: type(embeddings).forward(embeddings, *a, **k) * 0.5
        for change in widen, assign, write, replace, patch:
            for _ in range(4):
                self.assertSame()
            change(self.plain)
            change(self.ours)
            for _ in range(4):
                self.assertSame()
        self.ours.config.output_hidden_states = True
        self.assertEqual(len(self.ours(input_ids=draw_tokens(2, 20)).hidden_states), 4)

    def test_restore(self):
        for _ in range(4):
            self.assertSame()
        restore(self.ours)
        self.assertIsNone(self.ours._compiled_call_impl)
        self.assertTrue(torch.equal(self.assertSame()[0], self.plain(input_ids=draw_tokens(2, 20))[0]))
        optimize(self.ours, SHAPES, graphs=False)
        for _ in range(4):
            self.assertSame()
        self.assertEqual(self.replays(self.ours), 0)
        optimize(self.ours, SHAPES)
        for _ in range(4):
            self.assertSame()
        self.assertEqual(self.replays(self.ours), 2)
        self.assertRefused('mean_length is 65', optimize, self.ours, SHAPES, mean_length=65, kind=ValueError)
        for _ in range(4):
            self.assertSame()
        self.assertEqual(self.replays(self.ours), 4)

    def test_check(self):
        for side in 'src', 'dst':
            def lie(end, by, lies=side):
                if end.side != lies:
                    end.led = getattr(by._obj, end.side)
                return 0
            with mock.patch.object(End, 'point', lie):
                ours = self.optimized(self.plain)
                for seed in range(5):
                    tokens = draw_tokens(2, 32, seed)  # as long as the graph
                    self.assertNear(ours(input_ids=tokens).last_hidden_state,
                                    self.plain(input_ids=tokens).last_hidden_state)
            self.assertEqual(self.replays(ours), 0)
            self.assertIn("a graph's results were not those of the model", fuseplan.explain(ours))

    def test_tune(self):
        for _ in range(4):
            self.assertSame(5, 20)
        before = OnCpu.made[0]
        fuseplan.tune(self.ours, time_limit=2, most=1, progress=False)
        for _ in range(4):
            self.assertSame(5, 20)
        self.assertIsNot(OnCpu.made[-1], before)
        self.assertEqual(self.replays(self.ours), 2)

    def test_copies(self):
        for _ in range(4):
            self.assertSame()
        for other in copy.deepcopy(self.ours), pickle.loads(pickle.dumps(self.ours)):
            self.assertIsNone(other._compiled_call_impl)
            self.assertTrue(torch.equal(run(other)[0].last_hidden_state, run(self.plain)[0].last_hidden_state))

    def test_compile(self):
        compiled = torch.compile(self.ours, backend='aot_eager')
        tokens = draw_tokens(2, 20)
        for _ in range(4):
            self.assertNear(compiled(input_ids=tokens)[0], self.plain(input_ids=tokens)[0])
        self.assertEqual(self.replays(self.ours), 0)

    def test_threads(self):
        lengths, errors, done = ([20, 20], [20, 7], [3, 20], [11, 1]), [], []
        wants = [run(self.plain, lengths=one) for one in lengths]
        for _ in range(3):
            run(self.ours, lengths=[20, 7])

        def work(i):
            want, real = wants[i]
            try:
                with torch.no_grad():
                    for _ in range(20):
                        got = run(self.ours, lengths=lengths[i])[0]
                        self.assertNear(got.last_hidden_state[real], want.last_hidden_state[real])
                done.append(i)
            except BaseException as error:
                errors.append(error)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((errors, sorted(done)), ([], [0, 1, 2, 3]))
        self.assertEqual((len(OnCpu.made), self.replays(self.ours)), (1, 81))

    def test_limits(self):
        with mock.patch.object(graphs, '_GRAPHS', 2):
            for batch in (1, 2, 3) * 4:
                self.assertSame(batch)
            self.assertIn('CUDA graphs: 2 with', fuseplan.explain(self.ours))
        with mock.patch.object(graphs, '_BYTES', 1000):
            for _ in range(4):
                self.assertSame(7)
        self.assertIn('the GPU takes longer than the host', fuseplan.explain(self.ours))
        count = len(OnCpu.made)
        with mock.patch.object(graphs, '_TOKENS', 100):
            for _ in range(4):
                self.assertSame(8)
        self.assertEqual(len(OnCpu.made), count)

    def test_other_models(self):
        for name in models.MODELS:
            if not models.has(name) or 'wav2vec2' in name or name == 'hubert' or name == 'whisper':
                continue
            with self.subTest(name):
                plain = models.draw(name)
                inputs, _ = fuseplan.probe.draw_inputs(plain, 3, 21)
                if models.MODELS[name][1] == 'causal' and 'use_cache' in vars(plain.config):
                    inputs['use_cache'] = False
                seq_len = fuseplan.probe.run_model(plain, inputs)[0].shape[1]
                ours = self.optimized(plain, [(4, 64 if 'input_ids' in inputs else seq_len)])
                waits = name.startswith('gpt2')  # transformers looks into masks, but in a capture
                may_wait = name.startswith('opt')  # the same, in some versions
                for masked in (False, True) if 'input_ids' in inputs and name != 'siglip text' else (False,):
                    count = self.replays(ours)
                    if masked:
                        inputs['attention_mask'] = right(3, 21)
                    real = inputs['attention_mask'].bool() if masked else slice(None)
                    want = plain(**inputs)
                    for _ in range(4):
                        got = ours(**inputs)
                        self.assertEqual(list(got), list(want))
                        self.assertNear(got[0][real], want[0][real], 1e-4)
                        if 'pooler_output' in want:
                            self.assertNear(got.pooler_output, want.pooler_output, 1e-4)
                    replayed = 0 if waits or masked and name == 'clip text' else 2
                    self.assertIn(self.replays(ours) - count, (0, 2) if may_wait else (replayed,),
                                  graphs.graphs_of(ours).describe())

    def test_heads(self):
        for name, head in (('bert', 'BertForSequenceClassification'), ('roberta', 'RobertaForTokenClassification'),
                           ('bert', 'BertForMaskedLM'), ('bert', 'BertForQuestionAnswering'),
                           ('bloom', 'BloomForSequenceClassification')):
            with self.subTest(head):
                plain, ours = self.pair(name, head=head, pad_token_id=0)
                for seq_len in 20, 20, 20, 19, 19, 19, 20:
                    mask = right(3, seq_len)
                    inputs = {'input_ids': draw_tokens(3, seq_len) * mask}
                    if name == 'bloom':
                        inputs['use_cache'] = False
                    if 'Token' in head or 'LM' in head or 'Question' in head:  # on a CPU others wait for row 0
                        inputs['attention_mask'] = mask
                    want, got = (m(**inputs) for m in (plain, ours))
                    self.assertEqual(list(got), list(want))
                    for key in want:
                        rows = mask.bool() if want[key].shape[:2] == (3, seq_len) else slice(None)
                        self.assertNear(got[key][rows], want[key][rows])
                self.assertEqual(self.replays(ours), 5 if head.endswith(graphs._TOKEN_HEADS) else 3)

    def test_masks_of_other_numbers(self):
        plain, ours = self.pair('bloom')
        tokens, mask = draw_tokens(2, 20), right(2, 20)
        for factor in 1, 1, 1, 2:
            mask[1] *= factor
            want, got = (m(input_ids=tokens, attention_mask=mask, use_cache=False)[0] for m in (plain, ours))
            self.assertNear(got[0][mask[0] > 0], want[0][mask[0] > 0])
            self.assertEqual(bool(got[1].isnan().all()), factor == 2)
        self.assertEqual(self.replays(ours), 2)

    def test_two_towers(self):
        text, image = (models.MODELS[name][3] for name in ('clip text', 'clip vision'))
        config = common.transformers.CLIPConfig(text_config=text, vision_config=image, projection_dim=16)
        plain = models.shake(common.transformers.CLIPModel(config).eval())
        ours = self.optimized(plain)
        inputs, _ = fuseplan.probe.draw_inputs(plain, 2, 20)
        for _ in range(4):
            want, got = (m(**inputs) for m in (plain, ours))
            self.assertNear(got.logits_per_image, want.logits_per_image)
            self.assertNear(got.text_model_output.last_hidden_state, want.text_model_output.last_hidden_state)
        self.assertEqual(self.replays(ours), 4)


class Waits(Case):
    """Models that wait for the GPU, which no graph can."""

    def check(self, forward, text):
        plain = models.draw()
        kind = type(plain.pooler)
        with mock.patch.object(kind, 'forward', forward(kind.forward)):
            ours = self.optimized(plain)
            for _ in range(5):
                want, got = (m(input_ids=draw_tokens(2, 20)) for m in (plain, ours))
                self.assertNear(got.pooler_output, want.pooler_output)
            self.assertIn(text, fuseplan.explain(ours))
            self.assertEqual((len(OnCpu.made), self.replays(ours)), (0, 0))

    def test_item(self):
        self.check(lambda of: lambda self, x: of(self, x) * (2 if x.sum() > 0 else 3), 'waits for the GPU')

    def test_nonzero(self):
        self.check(lambda of: lambda self, x: of(self, x) * x[x > 0].mean(), 'waits for the GPU')

    def test_failure(self):
        class Broken(OnCpu):

            def __init__(self, fn, inputs, results, device, pool):
                raise RuntimeError('operation not permitted when stream is capturing\nCUDA kernel errors')
        with mock.patch.dict(graphs.kinds, cpu=Broken):
            plain, ours = self.pair()
            for _ in range(5):
                want, got = (m(input_ids=draw_tokens(2, 20)) for m in (plain, ours))
                self.assertNear(got[0], want[0])
        self.assertIn('RuntimeError: operation not permitted when stream is capturing', fuseplan.explain(ours))
        self.assertFalse(capture.lock.locked())


class Copies(common.Case):
    """From the host, here to the device meta."""

    def test_copies(self):
        def make(n):
            moved = torch.arange(n).to('meta'), torch.tensor([1.0, n], device='meta'), torch.arange(n).to('meta', torch.half)
            return [t.dtype for t in moved]
        recorder = capture.Recorder()
        want = [torch.int64, torch.float32, torch.float16]
        recorder.warm(lambda: self.assertEqual(make(4), want))
        self.assertEqual(recorder.capture(lambda: make(4)), want)
        for text, fn in (('copies from the host', lambda: make(5)),
                         ('copies from the host', lambda: torch.tensor([2.0], device='meta')),
                         ('copies from the host', lambda: torch.arange(4).int().to('meta')),
                         ('waits for the GPU', lambda: torch.empty(4, device='meta').copy_(torch.ones(4))),
                         ('copies from the GPU', lambda: torch.empty(4, device='meta').cpu()),
                         ('waits for the GPU', lambda: torch.ones(4).nonzero()),
                         ('waits for the GPU', lambda: torch.ones(4)[torch.ones(4) > 0])):
            self.assertRefused(text, recorder.capture, fn, kind=capture.Refused)
        recorder.capture(lambda: torch.ones(4)[torch.arange(2)])


class Sentences(Case):

    def test_encode(self):
        try:
            from test_sentences import TEXTS, draw_sentence_transformer
            plain = draw_sentence_transformer(prompts={'query': 'w1 w2: '})
        except ImportError:
            self.skipTest('sentence-transformers is not installed')
        ours = optimize(copy.deepcopy(plain), [(16, 32)])
        texts = [text for text in TEXTS if len(text) < 60]
        want = torch.tensor(plain.encode(texts))
        for kwargs in ({'batch_size': 8},) * 3 + ({'batch_size': 8, 'prompt': 'w3 '},) * 2:
            got = torch.tensor(fuseplan.encode(ours, texts, **kwargs))
            of = torch.tensor(plain.encode(texts, prompt='w3 ')) if 'prompt' in kwargs else want
            self.assertGreater(float(torch.nn.functional.cosine_similarity(got, of).min()), 0.99999)
        self.assertEqual(self.replays(ours), 0)  # several batches follow one another
        for _ in range(5):
            self.assertNear(torch.tensor(fuseplan.encode(ours, texts[:7])), torch.tensor(plain.encode(texts[:7])))
        self.assertEqual(self.replays(ours), 3)
        for _ in range(5):  # its own, too
            self.assertNear(torch.tensor(ours.encode(texts[:7])), torch.tensor(plain.encode(texts[:7])))
        self.assertEqual(self.replays(ours), 6)
        one = plain.encode('w7 w8 w9')
        for _ in range(5):
            self.assertNear(torch.tensor(fuseplan.encode(ours, 'w7 w8 w9')), torch.tensor(one))
        ours[1].pooling_mode = plain[1].pooling_mode = 'cls'
        for of in ours, plain:
            if hasattr(of[1], 'pooling_mode_cls_token'):
                of[1].pooling_mode_cls_token, of[1].pooling_mode_mean_tokens = True, False
        one = plain.encode('w7 w8 w9')
        for _ in range(5):
            self.assertNear(torch.tensor(fuseplan.encode(ours, 'w7 w8 w9')), torch.tensor(one))
        self.assertEqual(fuseplan.stats(ours)['encoder.layer']['plain'], {})


if __name__ == '__main__':
    unittest.main()
