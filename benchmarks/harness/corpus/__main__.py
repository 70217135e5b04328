"""Records what small fits compute, and compares two recordings.

python -m benchmarks.harness.corpus record FOLDER [--only NAME...]
python -m benchmarks.harness.corpus compare OLD NEW

Both recordings should be made on one machine, with the same versions of all libraries; others round otherwise.
"""

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.harness.corpus.differences import differences
from benchmarks.harness.corpus.entries import ENTRIES
from benchmarks.harness.corpus.outputs import Outputs

__all__ = ["compare", "main", "record"]


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks; 1 if a fit fails, or if recordings differ."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="fit all entries, and write what they compute")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--only", nargs="+", choices=ENTRIES, default=list(ENTRIES), metavar="NAME")
    comparing = commands.add_parser("compare", help="tell what differs between two recordings")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "record":
        return record(options.folder, options.only)
    return compare(options.old, options.new)


def record(folder: Path, names: Iterable[str] = tuple(ENTRIES)) -> int:
    """Write the outputs of these entries, each into a folder of its own; 1 if a fit fails."""
    begin, failed = time.perf_counter(), []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            for name in names:
                start = time.perf_counter()
                outputs = _outputs(name)
                _write(folder / name, outputs)
                failed += [name] if "error.txt" in outputs else []
                print(f"{time.perf_counter() - start:6.2f} s  {len(outputs):3} files  {name}", flush=True)
    finally:
        torch.set_num_threads(threads)
    print(f"{time.perf_counter() - begin:6.1f} s in all" + (f", failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def compare(old: Path, new: Path) -> int:
    """Print what differs between two recordings; 1 if anything does."""
    found = list(differences(old, new))
    print("\n".join(found) if found else "nothing differs")
    return 1 if found else 0


def _outputs(name: str) -> Outputs:
    """What an entry computes, with the warnings on the way; if it fails, the error."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outputs = ENTRIES[name](Path(folder))
        except Exception:  # the others shall be recorded
            traceback.print_exc()
            outputs = {"error.txt": traceback.format_exc()}
    told = "".join(f"{one.category.__name__}: {one.message}\n" for one in caught if _is_told_each_time(one))
    return outputs | ({"warnings.txt": told} if told else {})


def _is_told_each_time(warning: warnings.WarningMessage) -> bool:
    """Warnings of torch's own code come once in a process, so that they would depend on the entries before."""
    return issubclass(warning.category, (RuntimeWarning, UserWarning)) and "Triggered" not in str(warning.message)


def _write(folder: Path, outputs: Outputs) -> None:
    """Write the outputs of an entry in the place of those of an earlier recording."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, value in outputs.items():
        if isinstance(value, str):
            (folder / name).write_text(value, encoding="utf-8", newline="")
        else:
            np.save(folder / name, value.astype(str) if value.dtype == object else value, allow_pickle=False)


if __name__ == "__main__":
    sys.exit(main())
