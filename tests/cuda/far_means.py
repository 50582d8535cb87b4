"""Writes the weights of a BERT of one layer whose two layernorms get rows far from zero.

    far_means.py FILE

FILE is as HuggingFace stores it (model.safetensors): 12 heads of 64, FFN 3072.  Weights are drawn from
+-0.05, and 60 is added to the biases in front of the layernorms.
"""

import array
import json
import random
import sys

HIDDEN, FFN, FAR = 768, 3072, 60
SHAPES = {
    'attention.self.query': (HIDDEN, HIDDEN),
    'attention.self.key': (HIDDEN, HIDDEN),
    'attention.self.value': (HIDDEN, HIDDEN),
    'attention.output.dense': (HIDDEN, HIDDEN),
    'attention.output.LayerNorm': (HIDDEN,),
    'intermediate.dense': (FFN, HIDDEN),
    'output.dense': (HIDDEN, FFN),
    'output.LayerNorm': (HIDDEN,),
}
SHIFT = {
    'attention.output.dense.bias': FAR,
    'output.dense.bias': FAR,
    'attention.output.LayerNorm.weight': 1,
    'output.LayerNorm.weight': 1,
}


def main(path):
    draw = random.Random(1)
    header, data = {}, array.array('f')
    for module, shape in SHAPES.items():
        for name, of in (('weight', shape), ('bias', shape[:1])):
            name = f'{module}.{name}'
            middle = SHIFT.get(name, 0)
            count = of[0] * (of[1] if len(of) > 1 else 1)
            first = len(data) * data.itemsize
            data.extend(middle + draw.uniform(-0.05, 0.05) for _ in range(count))
            header[f'encoder.layer.0.{name}'] = {
                'dtype': 'F32', 'shape': of, 'data_offsets': [first, len(data) * data.itemsize]}
    text = json.dumps(header).encode()
    with open(path, 'wb') as file:
        file.write(len(text).to_bytes(8, 'little') + text)
        data.tofile(file)


main(sys.argv[1])
