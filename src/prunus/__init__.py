"""prunus: binary decision trees learned by gradient descent."""

from prunus import ops
from prunus.errors import PrunusError

__all__ = ["PrunusError", "__version__", "ops"]

__version__ = "0.1.0"
