"""Refuses what arguments of the package's functions may not be, by their names."""

import collections.abc
import math
import numbers
import operator


def check(time_limit, progress, **counts):
    """counts: whole numbers from 1 on, or None."""
    if time_limit is not None and not (isinstance(time_limit, numbers.Real) and 0 <= time_limit < math.inf):
        raise ValueError(f"time_limit is {time_limit!r}; expected seconds, such as 60, or None")
    if not isinstance(progress, (bool, type(None))) and not callable(progress):
        raise ValueError(f"progress is {progress!r}; expected True, False or a function of an event")
    for name, value in counts.items():
        if value is not None and not (isinstance(value, numbers.Integral) and value >= 1):
            raise ValueError(f"{name} is {value!r}; expected a whole number from 1 on, or None")


def check_kind(name, value, kinds, expected):
    if not isinstance(value, kinds):
        raise TypeError(f"{name} is a {type(value).__name__}; expected {expected}")


def shapes_of(shapes):
    """A list of pairs of integers, or None."""
    if shapes is None:
        return None
    shapes = list(shapes) if isinstance(shapes, collections.abc.Iterable) else shapes
    try:
        found = [(operator.index(batch), operator.index(seq_len)) for batch, seq_len in shapes]
    except (TypeError, ValueError):
        found = []
    if not found or min(map(min, found)) < 1:
        raise ValueError(f"shapes are {shapes!r}; expected pairs (batch, tokens), such as [(1, 128), (8, 128)]")
    return found


def strings_of(name, given):
    """A list of sentences."""
    if isinstance(given, (str, collections.abc.Mapping)) or not isinstance(given, collections.abc.Iterable):
        raise TypeError(f"{name} is a {type(given).__name__}; expected a list of str")
    texts = list(given)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}: sentence {i} is a {type(text).__name__}; expected a str")
    return texts
