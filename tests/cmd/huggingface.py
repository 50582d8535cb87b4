"""Uses exported libraries for the CPU with PyTorch and transformers themselves, of any version from 4.48 on.

    huggingface.py SMALL OTHER CAUSAL LINE    tests the libraries; writes to the file LINE a command for longer sequences
    huggingface.py --long DIR                 a library that this command wrote

SMALL: heads 2 of 16, ffn 64, eps 1e-12, batches 2 and 4, 8 and 16 tokens.  OTHER: heads 1.  CAUSAL: as SMALL, of that
mask.  Where sentence-transformers or peft are missing, what needs them is left out.
"""

import copy
import importlib.util
import json
import os
import sys
import tempfile
import threading
import types

import torch
import transformers

SIZES = dict(hidden_size=32, num_attention_heads=2, intermediate_size=64, num_hidden_layers=3, vocab_size=64,
             layer_norm_eps=1e-12, pad_token_id=0)


def load(directory, name):
    """As docs/ship-a-plan.md says."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(directory, 'encoder.py'))
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Memory that the library does not write is seen.
    module._empty = lambda sizes, strides, dtype: torch.full(sizes, float('nan'), dtype=dtype)
    return module


def draw(kind='Bert', head='Model', **fields):
    torch.manual_seed(1)
    config = getattr(transformers, kind + 'Config')(**{**SIZES, **fields})
    model = getattr(transformers, kind + head)(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, 0.2)
    return model


def draw_tokens(batch, seq_len):
    return torch.randint(3, 64, (batch, seq_len))


def expect(what, good):
    if not good:
        sys.exit(f'FAILED: {what}')


def refuse(what, expected, function, *arguments, **named):
    try:
        function(*arguments, **named)
        said = 'nothing'
    except (TypeError, ValueError, RuntimeError) as error:
        said = str(error)
    expect(f"{what}: it says '{said}'", expected in said)


def compare(what, plain, ours, tokens, mask, kept=None):
    """The real rows of both, and zeros in the other ones."""
    with torch.no_grad():
        want = plain(input_ids=tokens, attention_mask=mask)[0]
        got = ours(input_ids=tokens, attention_mask=mask)[0]
    real = torch.ones_like(tokens).bool() if kept is None else kept.bool()
    error = float((got - want)[real].abs().max())
    expect(f'{what}: the difference is {error}', error < 1e-5)
    expect(f'{what}: rows of padding are not 0', not got[~real].any())


# ---- results ---------------------------------------------------------------------------------------


def check_results(library):
    right = (torch.arange(16) < torch.tensor([16, 5, 1, 9])[:, None]).long()
    gaps = (torch.rand(4, 16) < 0.5).long().index_fill(1, torch.tensor([7]), 1)
    for kind in 'Bert', 'Roberta', 'XLMRoberta', 'Camembert', 'Electra':
        for attention in ('eager',) if kind == 'Electra' else ('eager', 'sdpa'):
            plain = draw(kind, attn_implementation=attention)
            ours = library.encoder_from(copy.deepcopy(plain))
            for what, kept in ('none', None), ('right', right), ('left', right.flip(1)), ('gaps', gaps):
                for batch in (1, 3, 4, 37) if kind == 'Bert' else (9,):  # of 4 at most at once
                    mask = None if kept is None else kept.repeat(10, 1)[:batch]
                    compare(f'{kind} {attention}, padding {what}, batch {batch}', plain, ours,
                            draw_tokens(batch, 16), mask, mask)
    shorter = gaps[:3, :11]
    for what, mask in ('bool', shorter.bool()), ('float', shorter.float()):
        compare(f'a mask {what}', plain, ours, draw_tokens(3, 11), mask, shorter)
    whole = draw('Bert', 'ForSequenceClassification', num_labels=3)
    ours = library.encoder_from(copy.deepcopy(whole))
    tokens = draw_tokens(4, 16)
    tokens[:, 0] = 2
    with torch.no_grad():
        error = (ours(input_ids=tokens, attention_mask=right).logits -
                 whole(input_ids=tokens, attention_mask=right).logits).abs().max()
    expect(f'a model with a head: {error}', error < 1e-5)
    check_first(library, tokens, right.flip(1))


def check_first(library, tokens, left):
    """Rows of token 0 that are padding: who reads them."""
    for kind, head in ('Bert', 'ForSequenceClassification'), ('Roberta', 'ForSequenceClassification'):
        ours = library.encoder_from(draw(kind, head, num_labels=3))
        refuse(f'{kind}{head} padded on the left', 'token 0 of sequence 1 is padding, and the head', ours,
               input_ids=tokens, attention_mask=left)
    plain = draw('Bert', 'ForTokenClassification', num_labels=3)
    ours, model = library.encoder_from(copy.deepcopy(plain)), library.encoder_from(draw())
    with torch.no_grad():
        want, got = (m(input_ids=tokens, attention_mask=left).logits[left.bool()] for m in (plain, ours))
        hook = model.pooler.register_forward_pre_hook(lambda *a: (hook.remove(), run_in_thread(model, tokens))[0])
        pooled = model(input_ids=tokens, attention_mask=left).pooler_output
        again = model(input_ids=tokens, attention_mask=left.flip(1)).pooler_output
    expect('labels of tokens, padded on the left', (got - want).abs().max() < 1e-5)
    expect('what is pooled of padding is NaN, and no other', torch.equal(pooled.isnan().any(1), left[:, 0] == 0))
    expect('nothing is hidden in the next call', not again.isnan().any())


def run_in_thread(model, tokens):
    """While another call is under way."""
    thread = threading.Thread(target=torch.no_grad()(lambda: model(input_ids=tokens)))
    thread.start()
    thread.join()


# ---- what is refused -------------------------------------------------------------------------------


def change(function, *arguments, **fields):
    model = draw(*arguments, **fields)
    function(model)
    return model


def set_int8(model):
    query = model.encoder.layer[1].attention.self.query
    query.weight = torch.nn.Parameter(query.weight.to(torch.int8), requires_grad=False)


def set_value(value):
    def change_it(model):
        with torch.no_grad():
            model.encoder.layer[1].output.dense.weight[3, 5] = value
    return change_it


def check_models(library):
    models = [
        ('int8', 'layer 1: attention.self.query.weight is torch.int8', change(set_int8)),
        ('NaN', 'w2 of layer 1 has values that are NaN or infinite', change(set_value(float('nan')))),
        ('infinite', 'w2 of layer 1 has values that are NaN or infinite', change(set_value(float('inf')))),
        ('gelu_new', "config.hidden_act is 'gelu_new'", draw(hidden_act='gelu_new')),
        ('decoder', 'config.is_decoder is True', draw(is_decoder=True)),
        ('sizes', "config.intermediate_size is 96; the library runs 64: export one", draw(intermediate_size=96)),
        ('heads', "config.num_attention_heads is 4; the library runs 2: export one", draw(num_attention_heads=4)),
        ('half', 'the model is torch.float16 on cpu; the library takes torch.float32', draw().half()),
        ('training', 'call model.eval()', draw().train()),
        ('a part in training mode', 'call model.eval()', change(lambda m: m.encoder.layer[2].output.dropout.train())),
        ('devices', 'hf_device_map spreads it over 0, cpu',
         change(lambda m: setattr(m, 'hf_device_map', {'embeddings': 'cpu', 'encoder': 0}))),
        ('meta', 'layer 2: output.dense.weight is on meta', change(lambda m: m.encoder.layer[2].output.to('meta'))),
        ('hook', 'layer 0: output has a hook',
         change(lambda m: m.encoder.layer[0].output.register_forward_hook(lambda *a: None))),
        ('hook of the encoder', 'encoder has a hook',
         change(lambda m: m.encoder.register_forward_hook(lambda *a: None))),
        ('forward', 'attention.self has a forward() of its own',
         change(lambda m: setattr(m.encoder.layer[1].attention.self, 'forward', lambda *a, **k: None))),
        ('activation', 'layer 0: intermediate_act_fn is ReLU()',
         change(lambda m: setattr(m.encoder.layer[0].intermediate, 'intermediate_act_fn', torch.nn.ReLU().eval()))),
        ('tanh', "approximate='tanh'", change(lambda m: setattr(
            m.encoder.layer[0].intermediate, 'intermediate_act_fn', torch.nn.GELU(approximate='tanh').eval()))),
        ('scaling', 'attention.self.scaling is 0.5',
         change(lambda m: setattr(m.encoder.layer[0].attention.self, 'scaling', 0.5))),
        ('no bias', 'layer 2: attention.self.key has no bias',
         change(lambda m: setattr(m.encoder.layer[2].attention.self.key, 'bias', None))),
        ('norm', 'layer 1: output.LayerNorm is a Identity',
         change(lambda m: setattr(m.encoder.layer[1].output, 'LayerNorm', torch.nn.Identity().eval()))),
        ('eps', 'config.layer_norm_eps is 1e-12',
         change(lambda m: setattr(m.encoder.layer[0].output.LayerNorm, 'eps', 1e-5))),
        ('DistilBERT', 'has no list encoder.layer', transformers.DistilBertModel(transformers.DistilBertConfig(
            dim=32, n_heads=2, hidden_dim=64, n_layers=1, vocab_size=64)).eval()),
        ('a compiled model', 'expected a transformers model', torch.compile(draw())),
        ('parametrized', 'layer 0: output.dense is a torch.nn.utils.parametrize.ParametrizedLinear',
         change(lambda m: torch.nn.utils.parametrizations.weight_norm(m.encoder.layer[0].output.dense).eval())),
    ]
    if transformers.__version__ < '5':
        models += [('relative', "is 'relative_key'", draw(position_embedding_type='relative_key')),
                   ('pruned', 'config.pruned_heads is', change(lambda m: m.prune_heads({0: [1]})))]
    if find('peft'):
        import peft
        lora = peft.LoraConfig(target_modules=['query'], r=2)
        models += [('LoRA', 'expected a transformers model: merge_and_unload()', peft.get_peft_model(draw(), lora).eval()),
                   ('LoRA inside', 'layer 0: attention.self.query is a peft.tuners.lora.layer.Linear',
                    change(lambda m: (peft.inject_adapter_in_model(lora, m), m.eval())))]
        merged = peft.get_peft_model(draw(), lora).eval().merge_and_unload()
        library.encoder_from(merged)
    for what, expected, model in models:
        refuse(what, expected, library.encoder_from, model)


def check_calls(library):
    model = library.encoder_from(draw(attn_implementation='eager'))
    tokens, seen = draw_tokens(2, 8), torch.ones(2, 8)
    masks = [
        ('another length', 'the attention mask is for (2, 7) tokens; the input has (2, 8)', seen[:, :7]),
        ('another batch', 'the attention mask is for (3, 8) tokens; the input has (2, 8)', torch.ones(3, 8)),
        ('added to scores', 'has values other than 1 and 0', torch.log(seen.tril())),
        ('weights of tokens', 'has values other than 1 and 0', seen.tril() * 0.5),
        ('biases of scores', 'values other than 0 and those of at most -10000', -seen.tril()[:, None, None] * 2),
        ('triangle', 'differs between heads or queries', torch.ones(2, 1, 8, 8).tril()),
        ('no token', 'sequence 1 of the attention mask has no token', torch.tensor([[1.] * 8, [0.] * 8])),
        ('BlockMask', 'the attention mask is a BlockMask; expected a tensor', type('BlockMask', (), {})()),
    ]
    x = torch.randn(2, 8, 32)
    with torch.no_grad():
        for what, expected, mask in masks:
            refuse(f'mask: {what}', expected, model.encoder, x, mask)
        # What sentence-transformers calls the model with where attention is flash attention.
        flat = dict(cu_seq_lens_q=torch.tensor([0, 5, 8]), cu_seq_lens_k=torch.tensor([0, 5, 8]), max_length_q=5,
                    max_length_k=5, position_ids=torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2]]))
        if transformers.__version__ >= '5':
            refuse('several sequences in one', 'several sequences without padding (cu_seq_lens_q)', model, tokens[:1],
                   **flat)
        for name in 'output_hidden_states', 'output_attentions':
            refuse(name, f'{name} is set', model, tokens, **{name: True})
            if name == 'output_hidden_states' or transformers.__version__ >= '5':
                setattr(model.config, name, True)
                refuse(f'config.{name}', f'{name} is set', model, tokens)
                setattr(model.config, name, False)
        refuse('cross attention', 'encoder_hidden_states is given', model, tokens, encoder_hidden_states=x)
        model.train()
        refuse('training', 'call model.eval()', model, tokens)
    refuse('gradients', 'computes no gradients', model.eval(), tokens)


def check_operator(library):
    """Layers() and run() without a model; HuggingFace's arguments of both versions."""
    plan = library._lib.encoder_plan_at(0).contents
    expect('the first plan', (plan.batch, plan.seq_len, plan.packed, plan.mask, plan.measured_on) ==
           (2, 8, 0, b'full', None) and plan.workload.startswith(b'b=2 '))
    weights, wrong = ({name: torch.randn(shape) for name, shape in zip(library._NAMES, library._shapes())}
                      for _ in range(2))
    wrong['bo'] = torch.randn(33)
    refuse('a weight', 'bo of layer 1 is', library.Layers, [weights, wrong])
    layers, x, lengths = library.Layers([weights]), torch.randn(2, 8, 32), torch.tensor([8, 5], dtype=torch.int32)
    y, padded = layers(x), layers(x, lengths)
    x[1, 5:] = float('nan')
    expect('lengths', torch.equal(layers(x, lengths), padded) and torch.equal(padded[0], y[0]) and
           not torch.equal(padded[1, :5], y[1, :5]) and not padded[1, 5:].any())
    bad = [('width', 'expected (B,S,', torch.randn(2, 8, 33), None),
           ('lengths of another batch', 'expected torch.int32 (2,)', x, lengths[:1]),
           ('length', 'length 1 is 9; expected 1 to the sequence length 8', x, lengths.flip(0) + 1),
           ('no sequence', 'expected at least one sequence', x[:0], None)]
    for what, expected, of, real in bad:
        refuse(what, expected, library.run, of, real, layers.handle)
    encoder, x = library.encoder_from(draw()).encoder, torch.randn(2, 8, 32)
    one = x[:1]
    calls = [
        (x, dict(head_mask=[None, one]), "head_mask is given; the library's layers have none"),
        (x, dict(output_hidden_states=[1]), 'output_hidden_states is set; the library keeps neither'),
        (x, dict(use_cache=True), 'use_cache is given; the library keeps no keys and values'),
        (x, dict(past_key_values=one), 'past_key_values is given; the library keeps no keys and values'),
        (x, dict(new=0.5), "new is given; the library's layers have none"),
        (one, dict(seq_idx=one), 'several sequences without padding (seq_idx)'),
        (one, dict(position_ids=one), 'several sequences without padding (position_ids)'),
        (x, dict(is_causal=True), "is_causal is True; the library was exported with the mask 'full'"),
        (x, dict(head_mask=[None] * 2, is_causal=False, use_cache=False, past_key_values=None), 'nothing'),
    ]
    with torch.no_grad():
        for of, named, expected in calls:
            encoder._config._attn_implementation = 'flash_attention_2'
            refuse(f'{named}', expected, encoder, of, **named)
        refuse('a third argument', 'a third argument by position', encoder, x, None, [None, one])
    for named, expected in ('full', "call encoder_from(model, mask='strided:t=8')"), ('strided', 'nothing'):
        refuse('a mask by name', expected, library._check_plan_mask, 'strided:t=8', named)


def check_weights(library):
    """What a module's weights are used for."""
    plain = draw()
    model = library.encoder_from(copy.deepcopy(plain))
    with tempfile.TemporaryDirectory() as directory:
        for what, expected, function in (
                ('save_pretrained', 'save the model before', lambda: model.save_pretrained(directory)),
                ('state_dict', 'save the model before', model.state_dict),
                ('load_state_dict', 'load others before', lambda: model.load_state_dict(plain.state_dict())),
                ('half', 'torch.float16 on cpu was asked for', lambda: model.encoder.half()),
                ('to', 'torch.float32 on meta was asked for', lambda: model.encoder.to('meta')),
                ('deepcopy', 'cannot be copied or pickled', lambda: copy.deepcopy(model))):
            refuse(what, expected, function)
    compare('after what changes nothing', plain, model.to('cpu').float(), draw_tokens(2, 8), None)


# ---- tracing, and several libraries ----------------------------------------------------------------


class Layers(torch.nn.Module):

    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        return self.layers(x, return_dict=False)[0]


def check_tracing(library):
    plain = draw()
    ours, tokens = library.encoder_from(copy.deepcopy(plain)), draw_tokens(9, 16)
    ours.encoder.lengths = torch.full((9,), 16, dtype=torch.int32)
    compare('torch.compile', plain, torch.compile(ours, fullgraph=True, backend='aot_eager'), tokens, None)
    ours.encoder.lengths = None
    layers, x = Layers(ours.encoder), torch.randn(9, 16, 32)
    with torch.no_grad():
        exported = torch.export.export(layers, (x,))
        expect('torch.export', library._space in str(exported.graph) and
               torch.equal(exported.module()(x), layers(x)))


def check_several(small, other_directory, small_directory):
    """Modules of one name, too."""
    other, again = load(other_directory, 'small'), load(small_directory, 'again')
    expect('spaces', len({small._space, other._space, again._space}) == 2 and again.run is small.run)
    for library, fields in (small, {}), (other, dict(num_attention_heads=1, hidden_size=16)), (again, {}):
        plain = draw(**fields)
        ours = library.encoder_from(copy.deepcopy(plain))
        compare('several libraries', plain, ours, draw_tokens(2, 8), None)
        ours.encoder.lengths = torch.full((2,), 8, dtype=torch.int32)
        compare('several libraries, compiled', plain, torch.compile(ours, backend='eager'), draw_tokens(2, 8), None)


# ---- sentence-transformers -------------------------------------------------------------------------


def find(name):
    return importlib.util.find_spec(name) is not None


def write_model(directory, model):
    """A folder as from the hub, with a toy vocabulary."""
    words = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'] + [f'w{i}' for i in range(59)]
    with open(os.path.join(directory, 'vocab.txt'), 'w') as file:
        file.write('\n'.join(words) + '\n')
    with open(os.path.join(directory, 'tokenizer_config.json'), 'w') as file:
        json.dump({'tokenizer_class': 'BertTokenizer', 'model_max_length': 16}, file)
    model.save_pretrained(directory)


def check_sentences(library):
    import sentence_transformers
    texts = [' '.join(f'w{(i * j) % 59}' for j in range(1, 2 + i * 7 % 13)) for i in range(200)]
    with tempfile.TemporaryDirectory() as directory:
        write_model(directory, draw())
        plain, ours = (sentence_transformers.SentenceTransformer(directory, device='cpu') for _ in range(2))
        library.encoder_from(ours[0].auto_model)
        for side in 'right', 'left':
            plain.tokenizer.padding_side = ours.tokenizer.padding_side = side
            for batch in 37, 100, 128:
                want = plain.encode(texts, batch_size=batch, convert_to_tensor=True)
                got = ours.encode(texts, batch_size=batch, convert_to_tensor=True)
                near = float(torch.nn.functional.cosine_similarity(want, got).min())
                expect(f'sentences padded on the {side}, batch {batch}: cosine {near}', near > 0.99999)
        refuse('a SentenceTransformer', '[0].auto_model of a SentenceTransformer', library.encoder_from, plain)
    with tempfile.TemporaryDirectory() as directory:
        write_model(directory, draw('Bert', 'ForSequenceClassification', num_labels=1))
        plain, ours = (sentence_transformers.CrossEncoder(directory, device='cpu') for _ in range(2))
        library.encoder_from(ours.model)
        pairs = list(zip(texts, reversed(texts)))
        want, got = (torch.tensor(of.predict(pairs, batch_size=37)) for of in (plain, ours))
        expect(f'scores of pairs: {(want - got).abs().max()}', (want - got).abs().max() < 1e-5)


def main():
    if sys.argv[1] == '--long':
        library, plain = load(sys.argv[2], 'long'), draw()
        compare('longer sequences', plain, library.encoder_from(copy.deepcopy(plain)), draw_tokens(9, 21), None)
        return
    small_directory, other_directory, causal_directory, line = sys.argv[1:]
    small, causal = load(small_directory, 'small'), load(causal_directory, 'causal')
    check_results(small)
    check_models(small)
    check_calls(small)
    check_operator(small)
    check_weights(small)
    check_tracing(small)
    check_several(small, other_directory, small_directory)
    transformers.utils.logging.disable_progress_bar()
    if find('sentence_transformers'):
        check_sentences(small)
    refuse('another mask', "mask='causal'", causal.encoder_from, draw())
    model = causal.encoder_from(draw(), mask='causal')
    with torch.no_grad():
        refuse('left padding', "layers of the mask 'causal' take padding on the right", model, draw_tokens(2, 8),
               torch.tensor([[1] * 8, [0] + [1] * 7]))
        try:
            small.encoder_from(draw())(draw_tokens(2, 21))
        except ValueError as error:
            with open(line, 'w') as file:
                file.write(str(error).split(" with '")[1][:-1])
    print(f'all well, with PyTorch {torch.__version__}, transformers {transformers.__version__}')


if __name__ == '__main__':
    main()
