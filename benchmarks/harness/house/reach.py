"""What a call goes through: modules and functions that are run, and classes that an estimator is made of."""

import inspect
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from sklearn.datasets import load_iris

import prunus

__all__ = ["ESTIMATORS", "Reach", "count_classes", "count_options", "measure_reach", "reach_of_a_tree"]

ESTIMATORS: tuple[type[Any], ...] = (
    prunus.ArgminTreeClassifier,
    prunus.ReadableTreeClassifier,
    prunus.ArgminTreeClusterer,
    prunus.ArgminForestClassifier,
)


@dataclass(frozen=True)
class Reach:
    """What a call has run of a package."""

    modules: int
    """Files with code that was run within a function, which may be a lambda or a comprehension."""
    functions: int
    """Functions and methods; lambdas and comprehensions do not count."""


def measure_reach(call: Callable[[], object], package: Path) -> Reach:
    """What a call runs of a package, in this thread and in those that it starts with `threading`.

    Bodies of modules and classes do not count; but call it once before, for what modules call as they are imported.
    Functions without a file in the package, such as the methods of dataclasses, do not count.
    """
    root = package.resolve()
    own = [code for code in _run(call) if code.co_flags & inspect.CO_OPTIMIZED]
    own = [code for code in own if Path(code.co_filename).resolve().is_relative_to(root)]
    named = {(code.co_filename, code.co_firstlineno, code.co_name) for code in own if not code.co_name.startswith("<")}
    return Reach(len({code.co_filename for code in own}), len(named))


def reach_of_a_tree() -> tuple[Reach, Reach]:
    """What a fit of a tree with three epochs to iris runs of prunus, and what a prediction then does.

    Both are done before with every second row, so that nothing is imported any more. What is stored for the whole
    process at first use is not run again, and does not count.
    """
    package = Path(str(prunus.__file__)).parent
    x, y = load_iris(return_X_y=True)
    prunus.ArgminTreeClassifier(random_state=0, max_epochs=3).fit(x[::2], y[::2]).predict(x[::2])
    tree = prunus.ArgminTreeClassifier(random_state=0, max_epochs=3)
    return measure_reach(lambda: tree.fit(x, y), package), measure_reach(lambda: tree.predict(x), package)


def count_classes(kind: type[Any]) -> int:
    """Classes that a class inherits from, itself, those of scikit-learn and object included."""
    return len(kind.__mro__)


def count_options(kind: type[Any]) -> int:
    """Options of an estimator: what ``get_params`` has."""
    return len(kind().get_params())


def _run(call: Callable[[], object]) -> list[CodeType]:
    """Call a function, and return all code of Python that was run."""
    seen: dict[int, CodeType] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.setdefault(id(frame.f_code), frame.f_code)

    before, of_threads = sys.getprofile(), threading.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(of_threads)
    return list(seen.values())
