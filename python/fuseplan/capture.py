"""Captures what is called into a CUDA graph."""

import contextlib
import gc
import threading

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .stack import Refused

lock = threading.Lock()  # of the process: meanwhile none of fuseplan's threads waits for a whole GPU


class Checks(TorchDispatchMode):
    """Refuses operations that wait for the GPU or copy from the host."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func)
        if torch.Tag.data_dependent_output in func.tags or (
                torch.Tag.dynamic_output_shape in func.tags and not _is_plain_index(name, args)):
            raise Refused(f"{name} waits for the GPU")
        out = func(*args, **(kwargs or {}))
        if name.startswith(("aten._to_copy", "aten.copy_")):
            places = {t.device.type for t in (*args, out) if isinstance(t, torch.Tensor)}
            if len(places) > 1:
                raise Refused(f"{name} copies between the host and the GPU")
        return out


def _is_plain_index(name, args):
    return name.startswith("aten.index.") and not any(
        t is not None and t.dtype in (torch.bool, torch.uint8) for t in args[1])


def warm(fn):
    """Runs what is to be captured, so that libraries make what they make in a first call."""
    try:
        fn()
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}".splitlines()[0]) from error


def checked(fn):
    """fn(), refused before an operation that would end a capture: where transformers sees one, it waits for less."""
    with Checks():
        return fn()


class CudaGraph:
    """What fn() does on a GPU.  result: what it returned; replay() computes its tensors anew, where they are.  Graphs
    of one pool share memory, and run one after another, see Order."""

    new_pool = staticmethod(torch.cuda.graph_pool_handle)
    wait = staticmethod(torch.cuda.synchronize)
    is_captured = staticmethod(torch.cuda.is_current_stream_capturing)

    def __init__(self, fn, device, pool):
        self._graph = torch.cuda.CUDAGraph()
        self.replay = self._graph.replay
        here, stream = torch.cuda.current_stream(device), _stream_of(device)
        with torch.cuda.device(device), torch.cuda.stream(stream):
            stream.wait_stream(here)
            try:
                warm(fn)
                self.result = self._capture(fn, pool, device)
            finally:
                here.wait_stream(stream)

    def _capture(self, fn, pool, device):
        """torch.cuda.graph would also collect garbage and return memory, for more than the time of many calls."""
        collects = gc.isenabled()
        gc.disable()  # what it frees may wait for the GPU
        try:
            self._graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                return checked(fn)
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
            stream = torch._C._cuda_getCurrentRawStream(self._device.index)
            if stream != self._stream:
                if self._stream == 0:
                    self._event.record(torch.cuda.default_stream(self._device))
                torch.cuda.current_stream(self._device).wait_event(self._event)
                self._stream = stream

        def end(self):
            if self._stream != 0:
                self._event.record(torch.cuda.current_stream(self._device))


_streams = {}  # in which graphs are captured, by device


def _stream_of(device):
    if device not in _streams:
        _streams[device] = torch.cuda.Stream(device)
    return _streams[device]
