"""sentence-transformers whose layers an exported library runs, beside the same model in PyTorch.

    sentences.py [--sentences N] DIR

DIR was written by `fuseplan export` and built by make.  The model is drawn, of the library's sizes, and its
vocabulary is made up, so that nothing is downloaded.  Mean pooling adds up all rows of a sequence, those of
padding times 0: a single NaN there makes the embedding NaN.  So memory is NaN before it is used, and x in rows
past a length.  Prints for several batch sizes how many values of the embeddings are not finite, and the smallest
cosine to the plain model's, in fp32.  Exits 1 if any is not finite, a cosine is below 0.9999, or a row of y past
a length is not 0.
"""

import argparse
import copy
import os
import random
import sys
import tempfile

os.environ['HF_HUB_OFFLINE'] = '1'
import sentence_transformers
import torch
import transformers

from huggingface import ROUNDING_MAX, difference, expect, failures, load_library

BATCHES = (37, 64, 100, 122, 128)
COSINE_MIN = 0.9999
WORDS = 2000
NAN_BYTES = [1 << 30] + [1 << 19] * 64  # PyTorch keeps blocks below 1 MB apart


def draw_transformer(info, longest, device):
    """In fp32.  Of the weights that transformers draws, all biases are 0; here none is."""
    config = transformers.BertConfig(
        vocab_size=WORDS + 5, hidden_size=info.heads * info.head_size, num_attention_heads=info.heads,
        intermediate_size=info.ffn, num_hidden_layers=info.layers, layer_norm_eps=info.eps)
    torch.manual_seed(1)
    model = transformers.BertModel(config)
    for name, p in model.named_parameters():
        if name.endswith('bias'):
            torch.nn.init.normal_(p, std=0.02)
    with tempfile.TemporaryDirectory() as directory:
        model.save_pretrained(directory)
        with open(os.path.join(directory, 'vocab.txt'), 'w') as f:
            f.write('\n'.join(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'] + [f'w{i}' for i in range(WORDS)]))
        transformers.BertTokenizerFast.from_pretrained(directory).save_pretrained(directory)
        out = sentence_transformers.SentenceTransformer(directory, device=device)
    out.max_seq_length = longest
    return out.eval()


def draw_sentences(count, longest):
    """Of 1 to longest - 2 words; the tokenizer adds two tokens."""
    random.seed(1)
    return [' '.join(f'w{random.randrange(WORDS)}' for _ in range(random.randint(1, longest - 2)))
            for _ in range(count)]


def poison(device):
    """What PyTorch allocates next on a GPU is NaN."""
    if device == 'cuda':
        _ = [torch.full((n,), 0xff, dtype=torch.uint8, device=device) for n in NAN_BYTES]


def embed(model, sentences, batch):
    return model.encode(sentences, batch_size=batch, convert_to_tensor=True).float()


def check_sentences(plain, ours, sentences, device):
    want = embed(plain, sentences, 64)
    others = torch.cosine_similarity(want, want.roll(1, 0)).median()
    print(f'cosines of different sentences: {others:.4f} in the median', flush=True)
    for batch in BATCHES:
        poison(device)
        got = embed(ours, sentences, batch)
        broken = int((~got.isfinite()).sum())
        cosine = float(torch.cosine_similarity(got, want).min())
        expect(f'{len(sentences)} sentences, {batch} a batch: {broken} values are not finite, the smallest cosine '
               f'is {cosine:.6f}', broken == 0 and cosine >= COSINE_MIN)


def lengths_in(batch, seq_len):
    return torch.randint(1, seq_len + 1, (batch,), dtype=torch.int32)


def is_right(y, want, real):
    """Real rows are those of want, where only the order of sums may differ, and all others 0."""
    return difference(y, want.float(), real) < ROUNDING_MAX and not y[~real].any()


def check_rows(layers, batch, seq_len, library):
    """Real rows of y do not depend on what x holds in others."""
    device = library._device
    x = torch.randn(batch, seq_len, library._hidden, device=device, dtype=library._dtype)
    lengths = lengths_in(batch, seq_len)
    real = torch.arange(seq_len) < lengths[:, None]
    bad = x.masked_fill(~real[:, :, None].to(device), float('nan'))
    want = layers(x, lengths)
    right = []
    for where in ('cpu', device):
        for _ in range(3):  # the second call may record a graph
            poison(device)
            right.append(is_right(layers(bad, lengths.to(where)), want, real))
    expect(f'({batch},{seq_len}): rows of padding are 0, and nothing depends on those of x', all(right))


def check_capture(layers, batch, seq_len, library):
    """A captured graph, run with other lengths than it was captured with."""
    x = torch.randn(batch, seq_len, library._hidden, device='cuda', dtype=library._dtype)
    lengths = lengths_in(batch, seq_len).cuda()
    layers(x, lengths)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = layers(x, lengths)
    right = []
    for _ in range(3):
        lengths.copy_(lengths_in(batch, seq_len))
        y.fill_(float('nan'))
        graph.replay()
        right.append(is_right(y, layers(x, lengths), torch.arange(seq_len, device='cuda') < lengths[:, None]))
    expect(f'({batch},{seq_len}): so they are in a captured graph that runs with other lengths', all(right))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('directory', metavar='DIR')
    p.add_argument('--sentences', type=int, default=4096)
    a = p.parse_args()
    library = load_library(a.directory)
    longest = max(seq_len for _, seq_len in library.sizes())
    plain = draw_transformer(library.info, longest, library._device)
    ours = copy.deepcopy(plain).to(library._dtype)
    library.encoder_from(ours[0].auto_model)
    check_sentences(plain, ours, draw_sentences(a.sentences, longest), library._device)
    layers = ours[0].auto_model.encoder.layers
    with torch.no_grad():
        for batch, seq_len in library.sizes():
            for size in dict.fromkeys([(batch, seq_len), (batch, seq_len - 3), (max(batch - 1, 1), seq_len)]):
                check_rows(layers, *size, library)
                if library._device == 'cuda':
                    check_capture(layers, *size, library)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
