"""Engines that examples and pages run on, which few machines have."""

import re

__all__ = ["ENGINES", "engine_of"]

ENGINES = ("dask", "pyspark", "ray")
IMPORT = re.compile(rf"^(?:from|import) ({'|'.join(ENGINES)})\b", re.MULTILINE)


def engine_of(code: str) -> str | None:
    """The engine that code imports, if it does.

    >>> engine_of("import ray"), engine_of("import prunus")
    ('ray', None)
    """
    found = IMPORT.search(code)
    return None if found is None else found[1]
