"""What every supervised method is here: a class with `fit`, `predict`, `log_loss` and `n_parameters`."""

from typing import Any, ClassVar, Literal, NoReturn, Self, get_args

import numpy as np
import numpy.typing as npt

__all__ = ["MethodBase", "Probabilities", "Rows", "Targets", "Task", "check_rows", "check_targets", "is_table"]

Task = Literal["classes", "values"]
Rows = npt.NDArray[np.float32]
Targets = npt.NDArray[Any]
"""Class numbers, int64, or values, float64."""
Probabilities = tuple[npt.NDArray[Any], npt.NDArray[Any]]
"""Class numbers, (k,), and their probabilities, (n, k)."""

TASKS: tuple[str, ...] = get_args(Task)


class MethodBase:
    """A method that checks what it is given, and leaves the rest to `_fit` and `_predict`.

    It is used as ``find_method(name)(task, random_state=seed, **options).fit(x, y).predict(x)``.

    Parameters
    ----------
    task : {"classes", "values"}
    random_state : int
        Seed of everything random.

    Examples
    --------
    >>> class Mean(MethodBase):
    ...     def _fit(self, x, y, x_valid, y_valid):
    ...         self.mean_ = y.mean()
    ...     def _predict(self, x):
    ...         return np.full(len(x), self.mean_)
    ...     def _count(self):
    ...         return 1
    >>> mean = Mean("values").fit(np.zeros((2, 1), np.float32), np.array([1.0, 3.0]))
    >>> mean.predict(np.zeros((1, 1), np.float32)), mean.n_parameters
    (array([2.]), 1)
    """

    tasks: ClassVar[tuple[str, ...]] = TASKS
    """What the method can learn."""
    takes_tables: ClassVar[bool] = False
    """Whether rows may also be a DataFrame with categories and missing values, which is passed on as it is."""
    stops_itself: ClassVar[bool] = False
    """Whether it has an option time_limit, after which the best found so far is taken."""
    n_features_: int
    n_classes_: int
    """Classes are numbered below it; 0 if the task is values."""

    def __init__(self, task: Task, *, random_state: int = 0) -> None:
        if task not in TASKS:
            refuse(f"task must be one of {TASKS}, got {task!r}")
        if task not in self.tasks:
            refuse(f"task must be {self.tasks[0]!r} for {type(self).__name__}, got {task!r}")
        self.task = task
        self.random_state = random_state

    @property
    def n_parameters(self) -> int:
        """Numbers that were learned; each method says how it counts."""
        self._check_fitted()
        return self._count()

    def fit(self, x: Any, y: Targets, x_valid: Any = None, y_valid: Targets | None = None) -> Self:
        """Learn.

        Parameters
        ----------
        x : float32 array of shape (n, d), or DataFrame where the method takes tables
            In an array the numbers of the table are standardized and its categories one-hot.
        y : array of shape (n,)
            Class numbers from 0, int64, or values, float64.
        x_valid, y_valid : as x and y, optional
            Rows to stop early by, where the method does; never learned from. Classes that y lacks are left out.

        """
        x = self._check_rows(x)
        y = check_targets(y, self.task, len(x))
        if (x_valid is None) != (y_valid is None):
            refuse("x_valid and y_valid must be given together, got only one of them")
        if x_valid is not None and y_valid is not None:
            x_valid, y_valid = self._check_rows(x_valid, x.shape[1]), check_targets(y_valid, self.task, len(x_valid))
            x_valid, y_valid = _of_known_classes(x_valid, y_valid, y) if self.task == "classes" else (x_valid, y_valid)
        self.n_classes_ = int(y.max()) + 1 if self.task == "classes" else 0
        self._fit(x, y, x_valid, y_valid)
        self.n_features_ = x.shape[1]
        return self

    def predict(self, x: Any) -> Targets:
        """Class numbers, int64, or values, float64, of shape (n,)."""
        self._check_fitted()
        predicted = self._predict(self._check_rows(x, self.n_features_))
        return np.asarray(predicted, dtype=np.int64 if self.task == "classes" else np.float64)

    def log_loss(self, x: Any, y: Targets) -> float | None:
        """Mean of minus the logarithm of the probability of the right class; less is better.

        Parameters
        ----------
        x : rows as in fit
        y : array of shape (n,)
            Class numbers. The probability of a class that was not among those learned is 0.

        Returns
        -------
        float or None
            None if the task is values, or the method has no probabilities. 0 counts as 1e-12.
        """
        self._check_fitted()
        rows = self._check_rows(x, self.n_features_)
        found = self._probabilities(rows) if self.task == "classes" else None
        if found is None:
            return None
        classes, probabilities = found
        right = check_targets(y, self.task, len(rows))[:, None] == np.asarray(classes)
        return float(-np.log(np.clip((probabilities * right).sum(1), 1e-12, 1.0)).mean())

    def _fit(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> None:
        """Learn from checked rows."""
        raise NotImplementedError

    def _predict(self, x: Any) -> npt.NDArray[Any]:
        """Answer for checked rows."""
        raise NotImplementedError

    def _probabilities(self, x: Any) -> Probabilities | None:  # noqa: ARG002
        """Of classes, for checked rows, where the method has them."""
        return None

    def _count(self) -> int:
        """`n_parameters` once fitted."""
        raise NotImplementedError

    def _check_rows(self, x: Any, n_features: int | None = None) -> Any:
        return x if self.takes_tables and is_table(x) else check_rows(x, n_features)

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_features_"):
            refuse(f"{type(self).__name__} must be fitted first, got a call before fit()")


def is_table(x: Any) -> bool:
    """Whether rows are a DataFrame of pandas.

    >>> is_table(np.zeros((1, 1)))
    False
    """
    return hasattr(x, "iloc")


def check_rows(x: Any, n_features: int | None = None) -> Rows:
    """Rows as a matrix of finite float32 numbers, (n, d).

    >>> check_rows([[1, 2]]).dtype
    dtype('float32')
    """
    rows = np.ascontiguousarray(x, dtype=np.float32)
    if rows.ndim != 2 or len(rows) == 0:
        refuse(f"x must have the shape (n, d) with n > 0, got {rows.shape}")
    if n_features is not None and rows.shape[1] != n_features:
        refuse(f"x must have {n_features} columns as in fit, got {rows.shape[1]}")
    if not np.isfinite(rows).all():
        refuse("x must be finite, got missing or infinite values; fill them in first")
    return rows


def check_targets(y: Any, task: Task, n: int) -> Targets:
    """Targets of n rows as class numbers, int64, or finite values, float64.

    >>> check_targets([0, 1], "classes", 2)
    array([0, 1])
    """
    targets = np.asarray(y)
    if targets.shape != (n,):
        refuse(f"y must have the shape ({n},) as x has {n} rows, got {targets.shape}")
    if task == "classes":
        if targets.dtype.kind not in "iu":
            refuse_type(f"y must be class numbers from 0, got {targets.dtype}")
        if targets.min() < 0:
            refuse(f"y must be class numbers from 0, got {targets.min()}")
        return targets.astype(np.int64)
    if targets.dtype.kind not in "iuf":
        refuse_type(f"y must be numbers, got {targets.dtype}")
    if not np.isfinite(targets).all():
        refuse("y must be finite, got missing or infinite values")
    return targets.astype(np.float64)


def _of_known_classes(x: Any, y: Targets, known: Targets) -> tuple[Any, Targets | None]:
    """Rows for validation without those of classes about which nothing can be learned."""
    kept = np.isin(y, known)
    return (x[kept], y[kept]) if kept.any() else (None, None)


def refuse(message: str) -> NoReturn:
    """Raise an error for a value. Importing prunus imports torch, which methods that do without should not load."""
    from prunus.errors import InputValueError

    raise InputValueError(message)


def refuse_type(message: str) -> NoReturn:
    """Raise an error for a type."""
    from prunus.errors import InputTypeError

    raise InputTypeError(message)
