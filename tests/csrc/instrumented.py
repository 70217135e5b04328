"""A plugin of pytest that puts another build of the extension, named by PRUNUS_CORE, in the place of the usual one.

`make test-sanitizers` uses it with a build that checks every access to memory.
"""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

NAME = "prunus._core"
PATH = Path(os.environ.get("PRUNUS_CORE", "")).resolve()


def pytest_load_initial_conftests() -> None:
    """Load the build before anything imports prunus."""
    spec = spec_from_file_location(NAME, PATH)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[NAME] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])


def pytest_report_header() -> str:
    return f"extension: {PATH}"


def pytest_sessionfinish() -> None:
    """The tests have used this build, and no other."""
    from prunus.ops import cpp

    assert vars(cpp)["_core"].__file__ == str(PATH)
