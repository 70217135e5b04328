"""Classes as the target: labels, class numbers, and probabilities."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from prunus.data import TableEncoder
from prunus.data.checks import reading, sound_weight
from prunus.data.columns import is_missing
from prunus.errors import InputValueError
from prunus.targets.links import LOGIT, SOFTMAX, Link
from prunus.targets.scale import Scale
from prunus.targets.target import Array, Doubles, PathRows, Task, check_same_link

__all__ = ["Classes", "TwoClasses"]


@dataclass(frozen=True)
class Classes:
    """Class labels of any type; the outputs of the tree are scores of the classes before softmax.

    Examples
    --------
    >>> target = Classes.of(["red", "blue", "red"])
    >>> target.labels.tolist(), target.read(["red"], np.zeros((1, 2), np.float32)).tolist()
    (['blue', 'red'], [1])
    """

    labels: Array
    """The classes, sorted, (k,)."""
    class_weight: Any = None
    """Weights of the classes: a dict from labels to weights, "balanced" or None."""

    task: ClassVar[Task] = "classes"
    is_classes: ClassVar[bool] = True
    is_numbers: ClassVar[bool] = False
    is_clusters: ClassVar[bool] = False
    link: ClassVar[Link] = SOFTMAX
    one_dimensional: ClassVar[bool] = True

    @classmethod
    def of(cls, y: Any, class_weight: Any = None) -> Self:
        """A target with the classes that occur in y."""
        return cls(np.unique(_read_labels(y, warn=False)), class_weight)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels."""
        return tuple(self.labels.tolist())

    @property
    def n_outputs(self) -> int:
        """Number of outputs: one for each class."""
        return len(self.labels)

    def output_names(self, encoder: TableEncoder) -> tuple[str, ...]:  # noqa: ARG002
        """The labels as text."""
        return tuple(map(str, self.labels.tolist()))

    def take_over(self, before: Self) -> Self:
        """The classes of the earlier fit, with the weights of this one."""
        check_same_link(self, before)
        return replace(self, labels=before.labels)

    def read(self, y: Any, x: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        """Class numbers, (n,)."""
        labels = _read_labels(y, warn=True)
        check_consistent_length(labels, x)
        with reading("y", f"an array of the classes {self.labels.tolist()}"):
            unknown = np.setdiff1d(labels, self.labels)
        if len(unknown):
            raise InputValueError(
                f"y must contain only the classes {self.labels.tolist()}, got {unknown[:1].tolist()[0]!r}"
            )
        numbers: npt.NDArray[np.int64] = np.searchsorted(self.labels, labels).astype(np.int64)
        return numbers

    def weigh(self, targets: Array, weight: Doubles | None) -> Doubles | None:
        """Weights of the rows times the weights of their classes."""
        if self.class_weight is None:
            return weight
        of_rows: Doubles
        if isinstance(self.class_weight, str):  # "balanced"
            of_rows = compute_sample_weight(self.class_weight, targets)
        else:  # weights of all classes, also of those that these rows lack
            of_classes = compute_class_weight(self.class_weight, classes=self.labels, y=self.labels)
            if not np.isfinite(of_classes).all() or (of_classes < 0).any():
                raise InputValueError(f"class_weight must be finite and not negative, got {self.class_weight}")
            of_rows = of_classes[targets]
        if weight is not None and of_rows.any():
            of_rows = weight * sound_weight(of_rows)
        if not of_rows.any():
            raise InputValueError("class_weight must leave a row with a positive weight, got 0 for all rows")
        return sound_weight(of_rows)

    def scale(self, targets: Array, weight: Doubles | None) -> Self:  # noqa: ARG002
        """The same target: classes have no scale."""
        return self

    def for_loss(self, targets: Array) -> torch.Tensor:
        """Class numbers."""
        return torch.from_numpy(targets)

    def wanted(self, for_loss: torch.Tensor) -> npt.NDArray[np.float32]:
        """1 for the class of each row, 0 for all other classes, (n, k)."""
        return torch.nn.functional.one_hot(for_loss, self.n_outputs).float().numpy()

    def compared(self, outputs: Doubles) -> Doubles:
        """Probabilities."""
        return self.link.means(outputs)

    def output_limits(self, wanted: Doubles) -> None:  # noqa: ARG002
        """None: scores have no limits."""
        return

    def correction(self, rows: PathRows, *, is_constant: bool) -> Doubles:
        """The correction to the class frequencies in a node, if its rows have the same outputs."""
        wanted, weight = rows.sums(rows.wanted), rows.total
        if not is_constant:
            return np.zeros_like(wanted)
        prior = wanted.sum(0) / weight.sum()
        frequencies = (wanted + prior) / (weight + 1)  # as if there were one more row, of all classes in proportion
        outputs = rows.sums(rows.outputs) / np.maximum(weight, 1e-12)
        return np.where(weight > 0, self.link.outputs(frequencies) - outputs, 0.0)

    def scores(self, outputs: Doubles) -> Doubles:
        """The score of each class before softmax, (n, number of classes)."""
        return outputs

    def shares(self, means: Doubles) -> Doubles:
        """The share of each class, (T, number of classes), from means of what is wanted, (T, k)."""
        return means

    def predictions(self, outputs: Doubles) -> Doubles:
        """Probabilities of all classes, (n, number of classes)."""
        return torch.from_numpy(self.scores(outputs)).softmax(1).numpy()

    def answers(self, outputs: Doubles) -> Array:
        """The labels with the largest scores, (n,)."""
        answers: Array = self.labels[self.scores(outputs).argmax(1)]
        return answers

    def node_units(self, mean: Doubles, spread: Doubles, encoder: TableEncoder) -> tuple[Doubles, Doubles]:  # noqa: ARG002
        """Shares of the classes; their spread is left out, since it follows from the shares."""
        return self.shares(mean), spread[:, :0]

    def display_scale(self, names: tuple[str, ...]) -> Scale:
        """The log odds of the second of two classes; the scores of more, relative to their mean.

        Only the differences of scores matter.
        """
        k = self.n_outputs
        if len(names) == 2:
            matrix = np.array([[1.0]]) if k == 1 else np.array([[-1.0, 1.0]])
            return Scale((f"log odds of {names[1]}",), matrix, np.zeros(1))
        return Scale(tuple(f"score of {name}" for name in names), np.eye(k) - 1 / k, np.zeros(k))

    def agreement(self, soft: Doubles, hard: Doubles) -> float:
        """The share of rows whose two predicted labels are equal."""
        return float(np.mean(self.scores(soft).argmax(1) == self.scores(hard).argmax(1)))


def _read_labels(y: Any, *, warn: bool) -> Array:
    """The labels of y, (n,); an error if some are missing."""
    if y is None:
        raise InputValueError("requires y to be passed, but the target y is None")
    with reading("y", "an array of classes"):
        labels: Array = column_or_1d(y, warn=warn)
    missing = is_missing(labels) if labels.dtype == object else labels != labels  # NaN
    if missing.any():
        raise InputValueError(f"Input y contains NaN or None, first in row {missing.argmax()}: leave out such rows")
    try:
        check_classification_targets(labels)
    except ValueError as error:
        raise InputValueError(str(error)) from None
    return labels


@dataclass(frozen=True)
class TwoClasses(Classes):
    """Two class labels; the one output of the tree is the logit of the second one.

    Examples
    --------
    >>> target = TwoClasses.of(["no", "yes", "no"])
    >>> target.predictions(np.array([[0.0]])).tolist(), target.answers(np.array([[2.0]])).tolist()
    ([[0.5, 0.5]], ['yes'])
    """

    link: ClassVar[Link] = LOGIT

    @property
    def n_outputs(self) -> int:
        """One."""
        return 1

    def read(self, y: Any, x: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        """Class numbers, (n,); an error unless there are two classes."""
        if len(self.labels) != 2:
            raise InputValueError(
                f"y must have two classes with loss='binary_cross_entropy', got {len(self.labels)}. Use "
                "loss='cross_entropy'"
            )
        return super().read(y, x)

    def for_loss(self, targets: Array) -> torch.Tensor:
        """0 for the first class and 1 for the second, in single precision, (n, 1): the shape of the outputs."""
        return torch.from_numpy(targets.astype(np.float32)[:, None])

    def wanted(self, for_loss: torch.Tensor) -> npt.NDArray[np.float32]:
        """1 for the second class, 0 for the first one, (n, 1)."""
        return for_loss.numpy()

    def scores(self, outputs: Doubles) -> Doubles:
        """0 for the first class, and the logit for the second one, (n, 2)."""
        return np.concatenate((np.zeros_like(outputs), outputs), axis=1)

    def shares(self, means: Doubles) -> Doubles:
        """The shares of both classes, (T, 2), from that of the second one, (T, 1)."""
        return np.concatenate((1 - means, means), axis=1)
