"""As much of PyTorch as the Python file of an exported library calls for a run on a CPU in fp32."""

import ctypes
import math

float64, float32, float16, bfloat16 = 'float64', 'float32', 'float16', 'bfloat16'
int32, int8, uint8 = 'int32', 'int8', 'uint8'
_TYPES = {float32: ctypes.c_float, int32: ctypes.c_int, int8: ctypes.c_byte, uint8: ctypes.c_ubyte}


class device:

    def __init__(self, kind):
        self.type = kind

    def __eq__(self, other):
        return isinstance(other, device) and self.type == other.type

    def __str__(self):
        return self.type


class Tensor:
    device = device('cpu')
    is_cuda = requires_grad = False
    is_cpu = True

    def __init__(self, shape, dtype=float32, values=None):
        self.shape, self.dtype, count = tuple(shape), dtype, 1
        for size in shape:
            count *= size
        memory = (ctypes.c_ubyte * (count * ctypes.sizeof(_TYPES[dtype]) + 64))()
        offset = -ctypes.addressof(memory) % 64
        self._at = ctypes.addressof(memory) + offset
        self.values = (_TYPES[dtype] * count).from_buffer(memory, offset)  # which keeps the memory
        if values is not None:
            self.values[:] = values

    def data_ptr(self):
        return self._at if len(self.values) > 0 else 0

    def dim(self):
        return len(self.shape)

    def is_contiguous(self):
        return True

    def contiguous(self):
        return self

    def get_device(self):
        return -1

    def new_empty(self, count, dtype):
        return Tensor((count,), dtype)

    def detach(self):
        return self

    def tolist(self):
        return list(self.values)

    def split(self, count):
        row = len(self.values) // self.shape[0]
        return [Tensor((min(count, self.shape[0] - at), *self.shape[1:]), self.dtype,
                       self.values[at * row:(at + count) * row]) for at in range(0, self.shape[0], count)]

    def all(self):
        return all(self.values)


def cat(parts):
    return Tensor((sum(part.shape[0] for part in parts), *parts[0].shape[1:]), parts[0].dtype,
                  [value for part in parts for value in part.values])


def isfinite(t):
    return Tensor(t.shape, uint8, [math.isfinite(value) for value in t.values])


def is_grad_enabled():
    return False


class Tag:
    pt2_compliant_tag = 'pt2_compliant'


class _Namespace:
    """The operators of one library.  An operator that is registered twice is an error."""


class _Ops(type):

    def __getattr__(cls, name):
        setattr(cls, name, _Namespace())
        return getattr(cls, name)


class ops(metaclass=_Ops):
    called = 0


class library:

    @staticmethod
    def define(name, schema, tags):
        assert schema == '(Tensor x, Tensor? lengths, SymInt handle) -> Tensor'
        space, name = name.split('::')
        assert not hasattr(getattr(ops, space), name), f'{space}::{name} is registered twice'
        setattr(getattr(ops, space), name, None)

    @staticmethod
    def impl(name, kind, function):
        assert kind == 'cpu'

        def run(*arguments):
            ops.called += 1
            return function(*arguments)

        space, name = name.split('::')
        setattr(getattr(ops, space), name, run)

    @staticmethod
    def register_fake(name, function):
        pass


class _C:
    modes = 0

    class _dynamo:

        class guards:

            @staticmethod
            def _empty_strided_cpu(sizes, strides, dtype):
                assert strides == (sizes[1] * sizes[2], sizes[2], 1)
                out = Tensor(sizes, dtype)
                out.values[:] = [float('nan')] * len(out.values)
                return out

    @staticmethod
    def _len_torch_dispatch_stack():
        return _C.modes

    @staticmethod
    def _get_tracing_state():
        return None


class cuda:

    @staticmethod
    def current_device():
        return -1


class compiler:

    @staticmethod
    def is_dynamo_compiling():
        return False


class nn:

    class Module:
        training = False
        _forward_hooks = _forward_pre_hooks = {}

        def eval(self):
            return self

        def named_modules(self):
            yield '', self
            yield from ((name, part) for name, part in vars(self).items() if isinstance(part, nn.Module))

        def named_parameters(self):
            for name, module in self.named_modules():
                yield from ((f'{name}.{key}', t) for key, t in vars(module).items() if isinstance(t, Tensor))

    class LayerNorm(Module):
        __module__ = 'torch.nn.modules.normalization'
        eps = 1e-12
