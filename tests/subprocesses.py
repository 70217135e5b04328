"""Run a script in a fresh interpreter in which some packages cannot be imported."""

import functools
import json
import subprocess
import sys
from typing import Any


@functools.cache
def run_without(blocked: tuple[str, ...], script: str) -> Any:
    """What the script prints, as JSON; an error in it is one here."""
    code = f"import sys\nsys.modules.update(dict.fromkeys({blocked!r}))\n{script}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
