"""The C++ kernels under the compiler's sanitizers: no access out of bounds, no undefined behaviour, no data race."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("sanitize.cpp")
FLAGS = ["-std=c++17", "-O1", "-g1", "-pthread"]
MEMORY = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
BUILDS = [
    pytest.param([*MEMORY, "-fopenmp"], 160, id="memory-openmp"),
    # Only parallel.hpp differs from the build before; races-threads runs it as well.
    pytest.param([*MEMORY, "-fopenmp-simd"], 160, id="memory-threads", marks=pytest.mark.slow),
    # OpenMP's own runtime is not instrumented and would be reported.
    pytest.param(["-fsanitize=thread", "-fopenmp-simd"], 24, id="races-threads"),
]


def compilers() -> list[list[str]]:
    """Those of the environment variable CXX, or else the usual ones."""
    named = shlex.split(os.environ.get("CXX", ""))
    candidates = [named] if named else [["g++"], ["clang++"]]
    return [candidate for candidate in candidates if shutil.which(candidate[0])]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)


def works(compiler: list[str], flags: list[str], folder: Path) -> bool:
    """Whether a program with nothing to find builds and runs with these flags."""
    source, program = folder / "nothing.cpp", folder / "nothing"
    source.write_text("#include <vector>\nint main() { return static_cast<int>(std::vector<int>(3)[1]); }\n")
    built = run([*compiler, *FLAGS, *flags, str(source), "-o", str(program)])
    return built.returncode == 0 and run([str(program)]).returncode == 0


@pytest.mark.parametrize(("flags", "cases"), BUILDS)
def test_kernels_are_clean(flags: list[str], cases: int, tmp_path: Path) -> None:
    compiler = next((found for found in compilers() if works(found, flags, tmp_path)), None)
    if compiler is None:
        pytest.skip(f"no C++ compiler here (CXX, g++, clang++) builds and runs programs with {' '.join(flags)}")
    program = tmp_path / "sanitize"
    built = run([*compiler, *FLAGS, *flags, str(DRIVER), "-o", str(program)])
    assert built.returncode == 0, built.stderr
    done = run([str(program), str(cases)])
    assert done.returncode == 0, done.stderr
