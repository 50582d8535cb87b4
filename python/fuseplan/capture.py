"""Captures what is called into a CUDA graph."""

import contextlib
import ctypes
import functools
import gc
import threading

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .stack import Refused

lock = threading.Lock()  # of the process: meanwhile none of fuseplan's threads waits for a whole GPU


class Recorder(TorchDispatchMode):
    """Sees the operations of a call, which is made twice.  What it copies from the host at first is kept, and given
    again in the capture: it depends on sizes alone, as no operation may wait there for what the GPU computes."""

    def __init__(self):
        super().__init__()
        self._copies, self._captures = [], False

    def warm(self, fn):
        """Runs what is to be captured; libraries make what they make in a first call."""
        try:
            with self, _Tensors():
                fn()
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {error}".splitlines()[0]) from error

    def capture(self, fn):
        """fn(), refused before an operation that would end a capture."""
        self._captures = True
        with self, _Tensors():
            return fn()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self._captures and _waits(func, args):
            raise Refused(f"{func} waits for the GPU")
        if func is torch.ops.aten._to_copy.default:
            device = kwargs.get("device") or args[0].device
            if torch.device(device).type != args[0].device.type:
                return self._copy(func, args, kwargs)
        return func(*args, **kwargs)

    def _copy(self, func, args, kwargs):
        source = args[0]
        if source.device.type != "cpu" and self._captures:
            raise Refused(f"{func} copies from the GPU to the host")
        if not self._captures:
            made = func(*args, **kwargs)
            if source.device.type == "cpu":
                self._copies.append((source.clone(), made))
            return made
        for known, made in self._copies:
            if (known.dtype, made.dtype) == (source.dtype, kwargs.get("dtype") or source.dtype) and torch.equal(
                    known, source):
                return made.clone()  # which the model may change
        raise Refused(f"{func} copies from the host")


class _Tensors(TorchFunctionMode):
    """torch.tensor() on a GPU as the copy that it is, which Recorder would not see."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.tensor and kwargs.get("device") is not None:
            return func(*args, **{**kwargs, "device": "cpu"}).to(kwargs["device"])
        return func(*args, **kwargs)


def _waits(func, args):
    if torch.Tag.data_dependent_output in func.tags:
        return True
    if func is torch.ops.aten.copy_.default:
        return args[0].device.type != args[1].device.type
    if func is torch.ops.aten.index.Tensor:  # has the next tag, but by masks alone
        return any(t is not None and t.dtype in (torch.bool, torch.uint8) for t in args[1])
    return torch.Tag.dynamic_output_shape in func.tags


class Rows(ctypes.Structure):
    """CUDA_MEMCPY2D of cuda.h."""
    _fields_ = [("src_x", ctypes.c_size_t), ("src_y", ctypes.c_size_t), ("src_type", ctypes.c_int),
                ("src_host", ctypes.c_void_p), ("src", ctypes.c_uint64), ("src_array", ctypes.c_void_p),
                ("src_pitch", ctypes.c_size_t), ("dst_x", ctypes.c_size_t), ("dst_y", ctypes.c_size_t),
                ("dst_type", ctypes.c_int), ("dst_host", ctypes.c_void_p), ("dst", ctypes.c_uint64),
                ("dst_array", ctypes.c_void_p), ("dst_pitch", ctypes.c_size_t), ("width", ctypes.c_size_t),
                ("height", ctypes.c_size_t)]


_DEVICE = 2  # CU_MEMORYTYPE_DEVICE


def mover(t, takes, copy, copy_rows):
    """A function (tensor, stream) that copies a tensor of t's size into t, which is a graph's, or with takes false t
    into a contiguous one, and returns CUDA's status; without PyTorch's dispatcher, which takes longer than CUDA does.
    copy(to, from, bytes, stream); copy_rows(Rows by reference, stream)."""
    address, each = t.data_ptr(), t.element_size()
    size = t.numel() * each
    if t.is_contiguous():
        def take(given, stream):
            given = given if given.is_contiguous() else given.contiguous()  # and lives until it is in the stream
            return copy(address, given.data_ptr(), size, stream)

        def give(fresh, stream):
            return copy(fresh.data_ptr(), address, size, stream)
        return take if takes else give
    if t.dim() < 2 or not t[0].is_contiguous():
        return lambda other, stream: (t.copy_(other) if takes else other.copy_(t)) is None
    width, pitch = t[0].numel() * each, t.stride(0) * each
    rows = Rows(src_type=_DEVICE, dst_type=_DEVICE, src=address, dst=address, src_pitch=width if takes else pitch,
                dst_pitch=pitch if takes else width, width=width, height=t.shape[0])
    by = ctypes.byref(rows)

    def take_rows(given, stream):
        given = given if given.is_contiguous() else given.contiguous()
        rows.src = given.data_ptr()
        return copy_rows(by, stream)

    def give_rows(fresh, stream):
        rows.dst = fresh.data_ptr()
        return copy_rows(by, stream)
    return take_rows if takes else give_rows


@functools.lru_cache(maxsize=None)
def _driver():
    """CUDA's driver."""
    driver, pointer, handle = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64, ctypes.c_void_p
    driver.cuMemcpyDtoDAsync_v2.argtypes = [pointer, pointer, ctypes.c_size_t, handle]
    driver.cuMemcpy2DAsync_v2.argtypes = [handle, handle]
    driver.cuCtxGetCurrent.argtypes = [handle]
    driver.cuGraphGetNodes.argtypes = [handle, handle, handle]
    driver.cuGraphNodeGetType.argtypes = [handle, handle]
    driver.cuGraphMemcpyNodeGetParams.argtypes = [handle, handle]
    driver.cuGraphExecMemcpyNodeSetParams.argtypes = [handle, handle, handle, handle]
    return driver


class Copy(ctypes.Structure):
    """CUDA_MEMCPY3D of cuda.h."""
    _fields_ = [field for side in ("src", "dst") for field in (
        (side + "_x", ctypes.c_size_t), (side + "_y", ctypes.c_size_t), (side + "_z", ctypes.c_size_t),
        (side + "_lod", ctypes.c_size_t), (side + "_type", ctypes.c_int), (side + "_host", ctypes.c_void_p),
        (side, ctypes.c_uint64), (side + "_array", ctypes.c_void_p), (side + "_reserved", ctypes.c_void_p),
        (side + "_pitch", ctypes.c_size_t), (side + "_height", ctypes.c_size_t))] + [
            ("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t)]


_MEMCPY = 1  # CU_GRAPH_NODE_TYPE_MEMCPY


class End:
    """Of a copy in a graph, from an input or to a result: at first this, in later launches a call's own tensor, which
    then needs no copy beside the graph.  point(Copy by reference): tells CUDA, and returns its status."""

    def __init__(self, params, side, point):
        self._params, self._side, self._by, self._point = params, side, ctypes.byref(params), point
        self.own, self.bytes = getattr(params, side), params.width
        self.at = self.own

    def _lead(self, address):
        """Whether the copy's end is there now."""
        setattr(self._params, self._side, address)
        self.at = address if self._point(self._by) == 0 else -1  # unknown
        return self.at == address

    def leads_to(self, part):
        """A function of a tensor: whether the copy's end is there, which has the size of a part of the end's own, or,
        as this is not the whole or CUDA refuses it, back at its own."""
        whole = part.is_contiguous() and part.numel() * part.element_size() == self.bytes

        def leads(t):
            if whole and t.is_contiguous():
                address = t.data_ptr()
                if address == self.at or self._lead(address):
                    return True
            if self.at != self.own and not self._lead(self.own):
                raise RuntimeError("CUDA refuses to set a copy in a graph back")
            return False
        return leads


def find_ends(driver, graph, executable, inputs, results):
    """Ends by the addresses of inputs and results, of copies of a graph that have no other ones."""
    context, count = ctypes.c_void_p(), ctypes.c_size_t()
    if driver.cuCtxGetCurrent(ctypes.byref(context)) or driver.cuGraphGetNodes(graph, None, ctypes.byref(count)):
        return {}
    nodes = (ctypes.c_void_p * count.value)()
    if driver.cuGraphGetNodes(graph, nodes, ctypes.byref(count)):
        return {}
    sizes = {side: {t.data_ptr(): t.numel() * t.element_size() for t in of}
             for side, of in (("src", inputs), ("dst", results))}
    found = {}
    for node in nodes:
        kind, params = ctypes.c_int(-1), Copy()
        if (driver.cuGraphNodeGetType(node, ctypes.byref(kind)) or kind.value != _MEMCPY or
                driver.cuGraphMemcpyNodeGetParams(node, ctypes.byref(params))):
            continue
        for side, of in sizes.items():
            address = getattr(params, side)
            if (getattr(params, side + "_type") == _DEVICE and getattr(params, side + "_x") == 0 and
                    of.get(address) == params.width):
                found[address] = End(params, side, functools.partial(
                    _point, driver.cuGraphExecMemcpyNodeSetParams, executable, node, context))
    return found


def _point(set_params, executable, node, context, by):
    return set_params(executable, node, by, context)


class CudaGraph:
    """What fn() does on a GPU, with copies of inputs; results: a list into which it puts what it returns as copies.
    result: what it returned; replay() computes its tensors anew, where they are.  Graphs of one pool share memory, and
    run one after another, see Order.  empty(sizes, strides, dtype): a tensor on the GPU of the number current()."""

    new_pool = staticmethod(torch.cuda.graph_pool_handle)
    wait = staticmethod(torch.cuda.synchronize)
    is_captured = staticmethod(getattr(torch._C, "_cuda_isCurrentStreamCapturing",
                                       torch.cuda.is_current_stream_capturing))
    current = staticmethod(getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device))
    empty = staticmethod(getattr(torch._C._dynamo.guards, "_empty_strided_cuda",
                                 lambda sizes, strides, dtype: torch.empty_strided(sizes, strides, dtype=dtype,
                                                                                   device="cuda")))

    @staticmethod
    def mover(t, takes):
        return mover(t, takes, _driver().cuMemcpyDtoDAsync_v2, _driver().cuMemcpy2DAsync_v2)

    def end(self, t):
        """The End at an input or a result; None: no copy has it."""
        return self._ends.get(t.data_ptr())

    def __init__(self, fn, inputs, results, device, pool):
        keeps = hasattr(torch.cuda.CUDAGraph, "raw_cuda_graph_exec")  # PyTorch 2.10 and later
        self._graph = torch.cuda.CUDAGraph(keep_graph=True) if keeps else torch.cuda.CUDAGraph()
        self._ends = {}
        self.replay = super(torch.cuda.CUDAGraph, self._graph).replay  # that of C
        self._recorder = Recorder()  # has what the graph reads
        here, stream = torch.cuda.current_stream(device), _stream_of(device)
        with torch.cuda.device(device), torch.cuda.stream(stream):
            stream.wait_stream(here)
            try:
                self._recorder.warm(fn)
                self.result = self._capture(fn, pool, device)
                if keeps:
                    self._graph.instantiate()
                    self._ends = find_ends(_driver(), self._graph.raw_cuda_graph(), self._graph.raw_cuda_graph_exec(),
                                           inputs, results)
            finally:
                here.wait_stream(stream)

    def _capture(self, fn, pool, device):
        """torch.cuda.graph would also collect garbage and return memory, for more than the time of many calls."""
        collects = gc.isenabled()
        gc.disable()  # what it frees may wait for the GPU
        try:
            self._graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                return self._recorder.capture(fn)
            finally:
                self._graph.capture_end()
        except Refused:  # and the capture ended well
            raise
        except BaseException:
            self._end_failed(device)
            raise
        finally:
            if collects:
                gc.enable()

    @staticmethod
    def _end_failed(device):
        """PyTorch's generator of random numbers stays in a capture that failed, until another one succeeds."""
        with contextlib.suppress(RuntimeError):
            t, graph = torch.zeros(1, device=device), torch.cuda.CUDAGraph()
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                t.zero_()
            finally:
                graph.capture_end()

    class Order:
        """Lets a call wait, on the GPU, for the one before it, which may have been in another stream."""

        def __init__(self, device):
            self._device, self._stream = device, 0  # a number, 0: of the default one
            self._event = torch.cuda.Event()

        def begin(self):
            """The current stream, as CUDA sees it."""
            stream = torch._C._cuda_getCurrentRawStream(self._device.index)
            if stream != self._stream:
                if self._stream == 0:
                    self._event.record(torch.cuda.default_stream(self._device))
                torch.cuda.current_stream(self._device).wait_event(self._event)
                self._stream = stream
            return stream

        def end(self):
            if self._stream != 0:
                self._event.record(torch.cuda.current_stream(self._device))


_streams = {}  # in which graphs are captured, by device


def _stream_of(device):
    if device not in _streams:
        _streams[device] = torch.cuda.Stream(device)
    return _streams[device]
