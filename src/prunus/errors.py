"""The errors prunus raises for a user's mistake; each also is the matching standard error."""

__all__ = [
    "BackendError",
    "CheckpointError",
    "InputTypeError",
    "InputValueError",
    "ModelFileError",
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
    """Training cannot go on: the loss is no number."""


class ModelFileError(PrunusError, ValueError):
    """A file is not a model of prunus, is damaged, or was written by a newer version."""
