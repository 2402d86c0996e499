"""Builds the wheel with CMake: a PEP 517 backend that needs nothing beyond Python and the tools of the C++ build.

`pip install .` calls it. Settings: `--config-settings=cmake-args="-DX=Y …"`, and the environment variable
MARGINMERGE_BUILD_DIR for a build folder that is kept between runs.
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "bindings/python/marginmerge"
FILES = sorted([*PACKAGE.glob("*.py"), *PACKAGE.glob("*.pyi"), PACKAGE / "py.typed"])


def _version() -> str:
    found = re.search(r"project\(marginmerge VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    if found is None:
        raise RuntimeError("CMakeLists.txt: expected project(marginmerge VERSION …)")
    return found[1]


def _tag() -> str:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def _metadata() -> str:
    readme = (ROOT / "docs/python.md").read_text()
    return (
        f"Metadata-Version: 2.1\nName: marginmerge\nVersion: {_version()}\n"
        "Summary: Shrinks late-interaction indexes and keeps their ranking\nLicense: MIT\n"
        "Requires-Python: >=3.9\nRequires-Dist: numpy>=1.22\nDescription-Content-Type: text/markdown\n\n" + readme
    )


def _build(folder: pathlib.Path, settings: dict[str, str] | None) -> pathlib.Path:
    """Compiles the module; returns its file."""
    extra = shlex.split((settings or {}).get("cmake-args", "")) + shlex.split(os.environ.get("CMAKE_ARGS", ""))
    configure = ["cmake", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON",
                 "-DCMAKE_UNITY_BUILD_BATCH_SIZE=16",  # as in the preset 'release', whose cached objects then serve here too
                 "-DMARGINMERGE_WITH_PYTHON=ON", "-DMARGINMERGE_BUILD_TESTS=OFF", "-DMARGINMERGE_BUILD_BENCH=OFF",
                 f"-DPython_EXECUTABLE={_interpreter()}", *extra]  # fmt: skip
    if not (folder / "CMakeCache.txt").exists() and _have("ninja"):
        configure += ["-G", "Ninja"]
    subprocess.run(configure, check=True)
    jobs = str(os.cpu_count() or 1)
    subprocess.run(["cmake", "--build", folder, "--target", "marginmerge_python", "--parallel", jobs], check=True)
    module = folder / "python" / "marginmerge" / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not module.exists():
        raise RuntimeError(f"{module}: expected the compiled module, found none")
    return module


def _interpreter() -> str:
    """pip builds in a throw-away environment; headers belong to the interpreter behind it."""
    return os.path.realpath(sys.executable)


def _have(program: str) -> bool:
    return any(os.access(os.path.join(p, program), os.X_OK) for p in os.environ.get("PATH", "").split(os.pathsep))


def _write_wheel(path: pathlib.Path, contents: dict[str, bytes]) -> None:
    info = f"marginmerge-{_version()}.dist-info"
    contents = dict(contents)
    contents[f"{info}/METADATA"] = _metadata().encode()
    contents[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: marginmerge\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
    ).encode()
    contents[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    record = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in contents.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(data)}\n"
            wheel.writestr(name, data)
        wheel.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    kept = os.environ.get("MARGINMERGE_BUILD_DIR")
    with tempfile.TemporaryDirectory(prefix="marginmerge-build-") as scratch:
        module = _build(pathlib.Path(kept or scratch), config_settings)
        contents = {f"marginmerge/{file.name}": file.read_bytes() for file in FILES}
        contents[f"marginmerge/{module.name}"] = module.read_bytes()
    name = f"marginmerge-{_version()}-{_tag()}.whl"
    _write_wheel(pathlib.Path(wheel_directory) / name, contents)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """Everything that is in version control."""
    base = f"marginmerge-{_version()}"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(pathlib.Path(sdist_directory) / f"{base}.tar.gz", "w:gz") as archive:
        for name in listed.decode().split("\0"):
            if name:
                archive.add(ROOT / name, f"{base}/{name}")
        with tempfile.TemporaryDirectory() as folder:
            info = pathlib.Path(folder) / "PKG-INFO"
            info.write_text(_metadata())
            archive.add(info, f"{base}/PKG-INFO")
    return f"{base}.tar.gz"
