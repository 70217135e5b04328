"""The options of estimators that only tune how a tree is trained."""

from dataclasses import dataclass, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

__all__ = ["TrainingOptions", "nested"]

_FROM_ONE = Interval(Integral, 1, None, closed="left")
_AUTO = StrOptions({"auto"})
CONSTRAINTS: dict[str, list[Any]] = {
    "batch_size": [_FROM_ONE, _AUTO],
    "learning_rate": [Interval(Real, 0, None, closed="neither"), _AUTO],
    "weight_decay": [Interval(Real, 0, None, closed="left"), _AUTO],
    "dropout": [Interval(Real, 0, 1, closed="left")],
    "optimizer": [StrOptions({"adamw", "qhadam", "sgd"}), callable],
    "schedule": [StrOptions({"cosine", "plateau", "constant"})],
    "early_stopping_rounds": [_FROM_ONE, _AUTO, None],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "checkpoint": [str, Path, None],
}
"""What the options may be."""


@dataclass(frozen=True, kw_only=True, repr=False)
class TrainingOptions:
    """How a tree is trained by gradient descent; the defaults are chosen from the rows and the kind of leaf.

    It is the option `training` of estimators, whose `set_params` and `get_params` also take single ones of these, such
    as ``training__learning_rate``, in grid searches for instance.

    Parameters
    ----------
    batch_size : int or "auto", default="auto"
        Number of rows in a training step. "auto" chooses it from the number of rows.
    learning_rate : float or "auto", default="auto"
        Largest learning rate, which `schedule` lowers. "auto" chooses it for the kind of leaf; for clusters it is a
        small one, which refines those that training starts from.
    weight_decay : float or "auto", default="auto"
        How strongly training draws the weights towards zero. "auto" chooses it from the number of rows and the kind of
        leaf; for clusters that training starts from it is 0. The values of constant leaves of classifiers do not decay
        if there are 300 to 9,999 rows.
    dropout : float, default=0.0
        Share of the units of a network in the leaves that each training step leaves out at random: at least 0 and
        below 1.
    optimizer : {"adamw", "qhadam", "sgd"} or callable, default="adamw"
        The optimizer; the paper uses QHAdam. A callable ``optimizer(params, lr=..., weight_decay=...)`` returns a torch
        optimizer.
    schedule : {"cosine", "plateau", "constant"}, default="cosine"
        How the learning rate changes: "cosine" lowers it to 0 along half a cosine after a short rise, "plateau" lowers
        it whenever the loss has stopped improving, "constant" does not change it.
    early_stopping_rounds : int, "auto" or None, default="auto"
        Training stops after this many epochs in which the validation loss has not improved, and the weights of the best
        epoch are kept. "auto" chooses the number from that of the rows, and is None if there are fewer than 300, or if
        clusters are refined that training starts from. None trains for `max_epochs` on all rows, with no validation
        unless an `eval_set` is given.
    validation_fraction : float, default=0.15
        Share of the rows that is held out for validation if there is early stopping and no `eval_set`.
    checkpoint : str, Path or None, default=None
        File in which the state of training is saved from time to time. If it exists, `fit` resumes the run that was
        interrupted. The file is removed when training ends. A hard tree has a second file whose name has ".hard" at its
        end, and tree number k of a forest one with ".k".

    Examples
    --------
    >>> TrainingOptions(learning_rate=0.01)
    TrainingOptions(learning_rate=0.01)
    >>> from prunus import ArgminTreeClassifier
    >>> ArgminTreeClassifier().set_params(training__batch_size=64).training
    TrainingOptions(batch_size=64)
    """

    batch_size: int | Literal["auto"] = "auto"
    learning_rate: float | Literal["auto"] = "auto"
    weight_decay: float | Literal["auto"] = "auto"
    dropout: float = 0.0
    optimizer: Any = "adamw"
    schedule: Literal["cosine", "plateau", "constant"] = "cosine"
    early_stopping_rounds: int | Literal["auto"] | None = "auto"
    validation_fraction: float = 0.15
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        validate_parameter_constraints(CONSTRAINTS, vars(self), caller_name="TrainingOptions")

    def __repr__(self) -> str:
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        changed = [f"{one.name}={own[one.name]!r}" for one in fields(self) if own[one.name] != one.default]
        return f"TrainingOptions({', '.join(changed)})"


def nested(options: dict[str, Any]) -> dict[str, Any]:
    """Options by the names that estimators have for them: those of training get a prefix.

    >>> nested({"depth": 2, "batch_size": 64})
    {'depth': 2, 'training__batch_size': 64}
    """
    own = {one.name for one in fields(TrainingOptions)}
    return {f"training__{name}" if name in own else name: value for name, value in options.items()}
