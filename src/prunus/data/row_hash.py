"""Hashes of rows, by which rows are held out: a row is on the same side whatever file or chunk it lies in."""

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data.columns import Labels, read
from prunus.data.tables import Table, read_table

__all__ = ["held_out", "row_hashes"]

Hashes = npt.NDArray[np.uint64]

_CHUNK = 1 << 13  # rows that are mixed at a time: their numbers stay in the cache
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_MISSING = np.float64(-1.5e300)  # stands for a missing value
_HALF = np.uint64(32)


def row_hashes(X: Any) -> Hashes:  # noqa: N803
    """Compute a hash of each row from all its values.

    The hash depends on the names of the columns but not on their order, and on values but not on how they are stored:
    1, 1.0 and True are the same number, and numbers that are equal in single precision are the same unless they are
    whole numbers or dates. Missing values of all kinds are the same.

    Parameters
    ----------
    X : array-like, pandas or polars DataFrame, pyarrow Table or RecordBatch of shape (n, n_features)

    Returns
    -------
    uint64 array of shape (n,)

    Examples
    --------
    >>> hashes = row_hashes([[1.0, "red"], [2.5, "blue"], [1, "red"]])
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (True, False)
    """
    table = read_table(X)
    names = table.names if table.names is not None else [f"x{i}" for i in range(table.shape[1])]
    total = np.zeros(table.shape[0], dtype=np.uint64)
    for feature, name in enumerate(names):
        _add_column(table, feature, name, total)
    return _mixed(total)


def held_out(hashes: Hashes, fraction: float, seed: int) -> npt.NDArray[np.bool_]:
    """Choose about a fraction of the rows by their hashes.

    Parameters
    ----------
    hashes : uint64 array of shape (n,)
    fraction : float
        From 0 to 1.
    seed : int
        Another seed chooses other rows.

    Returns
    -------
    bool array of shape (n,)
        Whether a row is chosen; rows with the same hash are on the same side.

    Examples
    --------
    >>> round(float(held_out(np.arange(100_000, dtype=np.uint64), 0.25, seed=0).mean()), 2)
    0.25
    """
    salt = np.uint64(int.from_bytes(blake2b(str(seed).encode(), digest_size=8).digest(), "little"))
    return (_mixed(hashes ^ salt) >> np.uint64(11)).astype(np.float64) < fraction * 2.0**53


def _add_column(table: Table, feature: int, name: str, total: Hashes) -> None:
    """Add a column to the sums of all rows, times an odd number that depends on its name."""
    factor = np.uint64(int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little") | 1)
    found = read(table.column(feature), name)
    if isinstance(found, Labels):
        hashes = np.append(_text_hashes(found.levels), _bits(np.array([np.nan]), single=False)) * factor
        total += hashes[found.codes]  # -1, missing, is the last
        return
    for start in range(0, total.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        bits = _bits(found.values[part], single=found.kind == "number")
        np.multiply(bits, factor, out=bits)
        total[part] += bits


def _bits(values: npt.NDArray[Any], *, single: bool) -> Hashes:
    """The bits of numbers in double precision, the upper half mixed into the lower, which may be zeros.

    If numbers are compared in single precision, those that are not whole are rounded.
    """
    numbers = np.add(values, 0.0, dtype=np.float64)  # -0.0 becomes 0.0
    if single and values.dtype == np.float64:
        with np.errstate(over="ignore"):
            np.copyto(numbers, numbers.astype(np.float32), where=np.rint(numbers) != numbers)
    if not np.isfinite(numbers.sum()):
        numbers[np.isnan(numbers)] = _MISSING
    bits: Hashes = numbers.view(np.uint64)
    bits ^= bits >> _HALF
    return bits


def _text_hashes(texts: list[str]) -> Hashes:
    """Hashes of texts: sums of their bytes, each times a random number for its place, and of their lengths."""
    encoded = [text.encode("utf-8", "surrogatepass") + b"\0" for text in texts]
    lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
    content = np.frombuffer(b"".join(encoded), dtype=np.uint8).astype(np.uint64) + np.uint64(1)
    starts = np.cumsum(lengths) - lengths
    places = np.arange(content.size) - np.repeat(starts, lengths)
    factors = _mixed(np.arange(int(lengths.max(initial=0)), dtype=np.uint64) * _GOLDEN + _GOLDEN)
    sums: Hashes = np.add.reduceat(content * factors[places], starts) if texts else np.empty(0, dtype=np.uint64)
    return _mixed(sums)


def _mixed(x: Hashes) -> Hashes:
    """Every bit of a number depends on all bits of what it was (the finalizer of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * _MIX[0]
    x = (x ^ (x >> np.uint64(27))) * _MIX[1]
    return x ^ (x >> np.uint64(31))
