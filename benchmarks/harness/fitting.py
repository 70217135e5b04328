"""A method fitted in a process of its own, with limits on its time and memory."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from benchmarks.harness.limits import OK, OOT, run_limited
from benchmarks.harness.methods import METHODS, find_method
from benchmarks.harness.methods.interface import Rows, Targets, Task
from benchmarks.harness.worker import Answer, Job

__all__ = ["Fit", "fit", "fit_limited"]


@dataclass(frozen=True)
class Fit:
    """What became of a fit.

    Attributes
    ----------
    status : str
        ok; OOT (out of time) or OOM (out of memory); or failed, with the error.
    predictions : dict of arrays
        By the names of the rows that were given; empty unless the status is ok.
    seconds : float
        Of `fit` alone; up to the end of the process, if it was ended.
    n_parameters : int
    valid_loss : float or None
        Log-loss on the rows for validation, if there were any and the method has probabilities.
    """

    status: str
    predictions: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    seconds: float = 0.0
    n_parameters: int = 0
    valid_loss: float | None = None


def fit_limited(
    method: str,
    task: Task,
    options: Mapping[str, Any],
    train: tuple[Rows, Targets],
    valid: tuple[Rows, Targets] | None = None,
    *,
    rows: Mapping[str, Rows],
    random_state: int = 0,
    seconds: float,
    megabytes: float,
) -> Fit:
    """Fit a method and predict, and end it if it takes too long or holds too much memory.

    Parameters
    ----------
    method : str
        Name in METHODS, or ``module:class``.
    task : {"classes", "values"}
    options : dict
        Of the method; values that JSON can write.
    train, valid : tuples (x, y)
    rows : dict of arrays
        Rows to predict for.
    random_state : int
    seconds : float
        For `fit`, and again for the predictions.
    megabytes : float
        See `run_limited`.
    """
    arrays = {"x": train[0], "y": train[1]}
    arrays |= {} if valid is None else {"x_valid": valid[0], "y_valid": valid[1]}
    arrays |= {f"rows_{name}": some for name, some in rows.items()}
    arguments = {"method": method, "task": task, "options": dict(options), "random_state": random_state}
    outcome = run_limited(
        "benchmarks.harness.fitting:fit",
        arguments,
        arrays,
        seconds=seconds,
        megabytes=megabytes,
        preload=METHODS.get(method, method),
    )
    if outcome.status != OK:
        return Fit(outcome.verdict, seconds=outcome.seconds)
    if outcome.values["seconds"] > seconds:  # it ended by itself before the next look at it
        return Fit(OOT, seconds=outcome.values["seconds"])
    predictions = {name: outcome.values.pop(f"predicted_{name}") for name in rows}
    return Fit(OK, predictions, **outcome.values)


def fit(job: Job) -> Answer:
    """What `fit_limited` runs in the process."""
    arguments, data = job.arguments, job.arrays
    method = find_method(arguments["method"])(
        arguments["task"], random_state=arguments["random_state"], **arguments["options"]
    )
    begin = time.perf_counter()
    method.fit(data["x"], data["y"], data.get("x_valid"), data.get("y_valid"))
    seconds = time.perf_counter() - begin
    job.restart_clock()
    names = [name.removeprefix("rows_") for name in data if name.startswith("rows_")]
    return {
        "seconds": seconds,
        "n_parameters": int(method.n_parameters),
        "valid_loss": method.log_loss(data["x_valid"], data["y_valid"]) if "x_valid" in data else None,
        **{f"predicted_{name}": method.predict(data[f"rows_{name}"]) for name in names},
    }
