"""A HuggingFace BERT whose layers an exported library runs, beside the same model in PyTorch.

    huggingface.py DIR [OTHER...]

DIR was written by `fuseplan export` for a CUDA GPU and built by make; OTHER are further libraries, which run
in the same process, and DIR may be among them.  The model has the library's
sizes and weights drawn by transformers.  Prints for each batch of the library, and for a smaller one, the difference to the
model in fp32, beside that of PyTorch in the library's type (relative L2 norms over real tokens), and
checks what a user does: capture into a CUDA graph, torch.compile, torch.export, another stream,
inputs that must be refused.  Exits 1 if anything is wrong.
"""

import argparse
import copy
import importlib.util
import os
import sys

import torch
import transformers

DIFFERENCE_MAX = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float32: 2e-3}
ROUNDING_MAX = 3e-3  # what the same layers make of embeddings that are rounded in other places
failures = []


def expect(what, good):
    if not good:
        failures.append(what)
    print(f'{"ok" if good else "FAILED"}: {what}', flush=True)


def load_library(directory, name='encoder'):
    spec = importlib.util.spec_from_file_location(name, os.path.join(directory, 'encoder.py'))
    sys.modules[name] = library = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    return library


def draw_model(info):
    """In fp32, on the GPU."""
    torch.manual_seed(1)
    config = transformers.BertConfig(
        hidden_size=info.hidden, num_attention_heads=info.heads,
        intermediate_size=info.ffn, num_hidden_layers=info.layers, layer_norm_eps=info.eps,
        attn_implementation='sdpa')
    with torch.device('cuda'):
        model = transformers.BertModel(config, add_pooling_layer=False)
    return model.eval()


def draw_tokens(batch, seq_len):
    return torch.randint(1, 30000, (batch, seq_len), device='cuda')


def draw_lengths(batch, seq_len):
    """From 0.2 to 1 of seq_len, 0.6 in the mean."""
    shares = torch.linspace(0.2, 1, batch) if batch > 1 else torch.tensor([0.6])
    return (shares * seq_len).ceil().int().cuda()


def mask_of(lengths, seq_len):
    return (torch.arange(seq_len, device='cuda') < lengths[:, None]).long()


def hidden(model, **inputs):
    with torch.no_grad():
        return model(**inputs).last_hidden_state


def difference(got, want, real):
    return float((got.float() - want)[real].norm() / want[real].norm())


# ---- what a user does ------------------------------------------------------------------------------


def check_differences(reference, half, ours, batch, seq_len):
    tokens = draw_tokens(batch, seq_len)
    lengths = draw_lengths(batch, seq_len)
    padded = mask_of(lengths, seq_len)
    gaps = (torch.rand(batch, seq_len, device='cuda') < 0.6).long()
    gaps[:, seq_len // 2] = 1
    for name, mask in ('full', None), ('padded', padded), ('padded on the left', padded.flip(1)), ('with gaps', gaps):
        inputs = {'input_ids': tokens} if mask is None else {'input_ids': tokens, 'attention_mask': mask}
        real = torch.ones_like(tokens).bool() if mask is None else mask.bool()
        want = hidden(reference, **inputs)
        got = hidden(ours, **inputs)
        error = difference(got, want, real)
        expect(f'({batch},{seq_len}) {name}: rows of padding are 0', not got[~real].any())
        theirs = difference(hidden(half, **inputs), want, real)
        expect(f'({batch},{seq_len}) {name}: the difference to fp32 is {error:.2e}; '
               f"of PyTorch's {half.dtype} {theirs:.2e}", error <= DIFFERENCE_MAX[half.dtype])


def check_pieces(ours, batch, seq_len):
    """A batch larger than any plan's, of `batch` at most at once: at once, in a CUDA graph and compiled."""
    many = 2 * batch + 1
    tokens, lengths = draw_tokens(many, seq_len), draw_lengths(many, seq_len)
    real = mask_of(lengths, seq_len).bool()
    want = torch.cat([hidden(ours, input_ids=part, attention_mask=mask) for part, mask in
                      zip(tokens.split(batch), real.long().split(batch))]).float()
    got = hidden(ours, input_ids=tokens, attention_mask=real.long())
    expect(f'({many},{seq_len}) runs in pieces of {batch}', torch.equal(got.float(), want))
    ours.encoder.lengths = lengths
    hidden(ours, input_ids=tokens)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = hidden(ours, input_ids=tokens)
    graph.replay()
    expect(f'({many},{seq_len}) in a CUDA graph', difference(got, want, real) < 1e-3)
    got = hidden(torch.compile(ours, fullgraph=True), input_ids=tokens)
    expect(f'({many},{seq_len}) compiled', difference(got, want, real) < ROUNDING_MAX)
    ours.encoder.lengths = None


def all_tokens(batch, seq_len):
    """Lengths of sequences without padding.  Under capture and tracing transformers gives the layers
    a mask even where there is no padding, and nobody can look into it there."""
    return torch.full((batch,), seq_len, dtype=torch.int32, device='cuda')


def check_capture(ours, batch, seq_len):
    """A graph runs with other tokens and lengths than it was captured with."""
    tokens, lengths = draw_tokens(batch, seq_len), draw_lengths(batch, seq_len)
    ours.encoder.lengths = lengths
    hidden(ours, input_ids=tokens)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = hidden(ours, input_ids=tokens)
    tokens.copy_(draw_tokens(batch, seq_len))
    lengths.copy_(lengths.flip(0))
    graph.replay()
    ours.encoder.lengths = None
    mask = mask_of(lengths, seq_len)
    want = hidden(ours, input_ids=tokens, attention_mask=mask)
    expect('a captured graph runs with new tokens and lengths',
           difference(y, want.float(), mask.bool()) < 1e-3)


def check_tracing(library, ours, batch, seq_len):
    tokens = draw_tokens(batch, seq_len)
    want = hidden(ours, input_ids=tokens).float()
    everywhere = torch.ones_like(tokens).bool()
    ours.encoder.lengths = all_tokens(batch, seq_len)
    compiled = torch.compile(ours, fullgraph=True)
    error = difference(hidden(compiled, input_ids=tokens), want, everywhere)
    expect('torch.compile traces through the operator in one graph; the difference to the model as it '
           f'was, whose embeddings round elsewhere, is {error:.2e}', error < ROUNDING_MAX)
    ours.encoder.lengths = None
    x = torch.randn(batch, seq_len, want.shape[2], device='cuda', dtype=ours.dtype)
    with torch.no_grad():
        exported = torch.export.export(Layers(ours.encoder), (x,))
        expect('torch.export keeps the operator',
               library._space in str(exported.graph) and
               torch.equal(exported.module()(x), Layers(ours.encoder)(x)))


class Layers(torch.nn.Module):
    """All layers, from a tensor to a tensor."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, x):
        return self.encoder(x, return_dict=False)[0]


def check_inputs(library, ours, batch, seq_len):
    layers = Layers(ours.encoder)
    x = torch.randn(batch, seq_len, ours.config.hidden_size, device='cuda', dtype=ours.dtype)
    with torch.no_grad():
        want = layers(x)
        expect('an input that is not contiguous is right',
               torch.equal(layers(x.transpose(1, 2).contiguous().transpose(1, 2)), want))
        shifted = x.new_empty(x.numel() + 1)[1:].view(x.shape).copy_(x)
        expect('an input that is not aligned is right', torch.equal(layers(shifted), want))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            other = layers(x)
        stream.synchronize()
        expect('a run in another stream is right', torch.equal(other, want))
        refuse('an input of another type', layers, x.double())
        refuse('an input on the CPU', layers, x.cpu())
        refuse('an input of another width', layers, x[:, :, :-8])
        refuse('an input of another width, by the operator,',
               lambda x: library.run(x, None, ours.encoder.handle),
               x[:, :, :-8].contiguous())
        right = mask_of(draw_lengths(batch, seq_len), seq_len)
        real = right.bool()
        want = ours.encoder(x, right, return_dict=False)[0][real]
        for dtype in (torch.bool, torch.uint8, torch.int16, torch.float32):
            same = torch.equal(ours.encoder(x, right.to(dtype), return_dict=False)[0][real], want)
            expect(f'an attention mask of {dtype} is read as one of int64', same)
        longest = max(s for _, s in library.sizes())
        refuse('a longer sequence', lambda x: layers(x.expand(batch, longest + 1, -1).contiguous()), x[:, :1])


def refuse(what, function, argument):
    try:
        function(argument)
        expect(f'{what} is refused', False)
    except (TypeError, ValueError, RuntimeError) as error:
        expect(f'{what} is refused: {error}', 'CUDA error' not in str(error))


def check_others(directories):
    """Libraries in one process, each after the others were loaded."""
    libraries = [load_library(directory, f'other{i}') for i, directory in enumerate(directories)]
    for directory, library in zip(directories, libraries):
        reference = draw_model(library.info)
        half = copy.deepcopy(reference).to(library._dtype)
        check_differences(reference, half, library.encoder_from(copy.deepcopy(half)), *library.sizes()[0])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('directory', metavar='DIR')
    p.add_argument('others', metavar='OTHER', nargs='*')
    a = p.parse_args()
    library = load_library(a.directory)
    reference = draw_model(library.info)
    half = copy.deepcopy(reference).to(library._dtype)
    ours = library.encoder_from(copy.deepcopy(half))
    sizes = library.sizes()
    for batch, seq_len in sizes:
        check_differences(reference, half, ours, batch, seq_len)
        check_differences(reference, half, ours, max(batch - 1, 1), seq_len - 3)
    check_capture(ours, *sizes[0])
    check_pieces(ours, *sizes[-1])
    check_tracing(library, ours, *sizes[0])
    check_inputs(library, ours, *sizes[0])
    check_others(a.others)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
