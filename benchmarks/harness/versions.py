"""What the scores of a method depend on: versions of its libraries, and the state of source code."""

import hashlib
from importlib import import_module
from pathlib import Path

__all__ = ["version_of", "versions_of_prunus", "with_source"]


def version_of(module: str) -> str:
    """Name and version of a library. It is imported, so that the first fit need not do that.

    >>> version_of("sklearn").split()[0]
    'sklearn'
    """
    return f"{module} {import_module(module).__version__}"


def with_source(library: str, package: str) -> str:
    """Version of a library, and digits that change with any Python file of a package that runs on the CPU.

    The digits tell apart cells that were measured while the package changed.
    """
    root = Path(str(import_module(package).__file__)).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if "triton" not in path.relative_to(root).parts:
            digest.update(path.read_bytes())
    return f"{version_of(library)} source {digest.hexdigest()[:8]}"


def versions_of_prunus() -> str:
    """Of the trees of this library."""
    import_module("prunus.estimators")
    return f"{with_source('prunus', 'prunus')} {version_of('torch')}"
