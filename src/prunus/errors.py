"""The errors that prunus raises for a user's mistake. Each is also a standard error, such as ValueError."""

__all__ = [
    "BackendError",
    "CheckpointError",
    "InputTypeError",
    "InputValueError",
    "ModelFileError",
    "ProcessGroupError",
    "PrunusError",
    "TrainingError",
]


class PrunusError(Exception):
    """Base of every error that prunus raises on purpose."""


class InputValueError(PrunusError, ValueError):
    """An argument has the right type but a value, shape or device that cannot be used."""


class InputTypeError(PrunusError, TypeError):
    """An argument has a type or dtype that cannot be used."""


class BackendError(PrunusError, RuntimeError):
    """The backend that was asked for is not available here."""


class CheckpointError(PrunusError, ValueError):
    """A checkpoint cannot be read, or belongs to another run."""


class TrainingError(PrunusError, ArithmeticError):
    """Training cannot continue, because the loss is NaN or infinite."""


class ProcessGroupError(PrunusError, RuntimeError):
    """Processes that train together cannot go on, because one of them has ended or does not answer."""


class ModelFileError(PrunusError, ValueError):
    """A file is not a model of prunus, is damaged, or was written by a newer version."""
