"""As much of PyTorch as the Python file of an exported library calls for a run on a CPU in fp32."""

import ctypes

float32, float16, bfloat16, int32, uint8 = 'float32', 'float16', 'bfloat16', 'int32', 'uint8'
_TYPES = {float32: ctypes.c_float, int32: ctypes.c_int, uint8: ctypes.c_ubyte}


class device:

    def __init__(self, kind):
        self.type = kind

    def __eq__(self, other):
        return self.type == other.type


class Tensor:
    device = device('cpu')
    is_cuda = requires_grad = False
    is_cpu = True

    def __init__(self, shape, dtype=float32, values=None):
        self.shape, self.dtype, count = tuple(shape), dtype, 1
        for size in shape:
            count *= size
        self._memory = (ctypes.c_ubyte * (count * ctypes.sizeof(_TYPES[dtype]) + 64))()
        self._at = (ctypes.addressof(self._memory) + 63) // 64 * 64
        self.values = (_TYPES[dtype] * count).from_address(self._at)
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


def is_grad_enabled():
    return False


class Tag:
    pt2_compliant_tag = 'pt2_compliant'


class library:
    """What is registered is called at once."""
    operators = {}

    @staticmethod
    def define(name, schema, tags):
        assert schema == '(Tensor x, Tensor? lengths, SymInt handle) -> Tensor'

    @staticmethod
    def impl(name, kind, function):
        assert kind == 'cpu'
        library.operators[name] = function

    @staticmethod
    def register_fake(name):
        return lambda function: function


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


class _Operators:
    called = 0

    def run(self, *arguments):
        self.called += 1
        return library.operators['sizes::run'](*arguments)


class ops:
    sizes = _Operators()


class nn:

    class Module:
        training = False

        def eval(self):
            return self
