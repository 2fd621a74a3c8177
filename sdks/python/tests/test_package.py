"""The package works in an empty environment, and the documentation's code runs."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Client, Service
from tacho_sdk.guarding import guard

ROOT = Path(__file__).parents[1]
GUIDE = ROOT.parents[1] / "docs" / "sdk" / "python.md"
WHEELS = os.environ.get("TACHO_TEST_WHEELS", "")
PROGRAM = """
import sys, tacho_sdk as tacho, importlib.resources
waits = tacho.GuardDefaults(configuration_wait=120)
client = tacho.Tacho(api_key="key", base_url=sys.argv[1], request_timeout=120, guard=waits)
with client.run(agent_name="installed") as run:
    run.user_input("Hello")
assert client.decide("t", {"a": 1}).action == "ALLOW"
client.shutdown(120)
# The first event may have left before.
assert client.counters().accepted == 2
assert importlib.resources.files("tacho_sdk").joinpath("py.typed").is_file()
assert "site-packages" in tacho.__file__, tacho.__file__
"""
FORMER_NAME = """
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import tacho
    from tacho.testing import fake_tacho
import tacho_sdk, tacho_sdk.testing
assert tacho is tacho_sdk and fake_tacho is tacho_sdk.testing.fake_tacho
assert tacho_sdk.testing.__spec__.name == "tacho_sdk.testing"
assert ["named tacho_sdk now" in str(one.message) for one in said] == [True], said
"""


@pytest.mark.skipif(not WHEELS, reason="needs the wheel of setuptools: run `npm test -- python`")
def test_pip_installs_it_in_an_empty_environment(service: Service, tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    quiet: dict[str, Any] = {"check": True, "capture_output": True, "text": True, "timeout": 600}
    # Without pip, which would make the environment take five times as long.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], **quiet)
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # Build from a copy, because a build writes into the folder of the sources.
    copied = tmp_path / "sources"
    subprocess.run(["cp", "-r", str(ROOT), str(copied)], **quiet)
    # Without an index, nothing but the package itself and its build tool can be installed.
    install = ["install", "-q", "--no-index", "--find-links", WHEELS, str(copied)]
    subprocess.run([*pip, *install], env=variables, **quiet)
    listed = subprocess.run([*pip, "list", "--format=freeze"], env=variables, **quiet).stdout
    assert [line.split("==")[0] for line in listed.split()] == ["tacho-sdk"]
    subprocess.run([str(python), "-W", "error", "-c", PROGRAM, service.url], env=variables, cwd=tmp_path, **quiet)
    subprocess.run([str(python), "-c", FORMER_NAME], env=variables, cwd=tmp_path, **quiet)
    # PyPI has another project named tacho. Its package must stay unchanged, and `import tacho` must find it.
    (packages,) = tmp_path.glob("lib/*/site-packages")
    (packages / "tacho").mkdir()
    (packages / "tacho" / "__init__.py").write_text("theirs = True")
    subprocess.run([str(python), "-W", "error", "-c", "import tacho_sdk, tacho; assert tacho.theirs"], env=variables, **quiet)


def every_block() -> list[tuple[str, str]]:
    pages = [*ROOT.parents[1].glob("docs/**/*.md"), ROOT.parents[1] / "README.md", ROOT / "README.md"]
    found = [
        (page, code) for page in pages for code in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.S | re.M)
    ]
    return [(str(page.relative_to(ROOT.parents[1])), code) for page, code in found]


def test_the_code_of_every_page_compiles_and_names_what_the_package_has() -> None:
    assert len(every_block()) >= 25
    for page, code in every_block():
        tree = compile(code, page, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "tacho":
                assert hasattr(tacho, node.attr), f"{page}: tacho.{node.attr}"
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tacho_sdk"):
                assert importlib.util.find_spec(str(node.module)) is not None, f"{page}: {node.module}"
            assert not (isinstance(node, ast.Import) and node.names[0].name == "tacho"), (
                f"{page} names the module of another project"
            )


def blocks() -> list[str]:
    pages = [GUIDE, GUIDE.parents[1] / "long-approvals.md"]
    return [code for page in pages for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)]


@pytest.mark.parametrize("number", range(len(blocks())))
def test_the_code_of_the_guide_runs(
    number: int, service: Service, make: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TACHO_URL", service.url)
    monkeypatch.setenv("TACHO_API_KEY", "key")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tacho, "_client", None)
    # A slow machine must not be taken for a service without policies.
    monkeypatch.setattr(guard, "_CONFIGURATION_WAIT", 120.0)
    code = blocks()[number]
    if "tacho_sdk.integrations" in code:
        pytest.skip("needs a framework and a model; tests/integrations tests the integration with a scripted one")
    exec(compile(code, f"{GUIDE.name} block {number}", "exec"), {"__name__": "__main__"})
    client = tacho.client()
    assert client.flush(120).left == 0
    assert client.counters().dropped == {}
    assert len(service.events) > 0 or "tacho_sdk.testing" in code
    client.shutdown(0)


def test_the_guide_names_every_option_and_public_name() -> None:
    import inspect

    text = GUIDE.read_text(encoding="utf-8")
    options = [name for name in inspect.signature(tacho.Tacho).parameters if f"`{name}`" not in text]
    assert options == []


def test_the_limits_are_those_of_the_typescript_sdk() -> None:
    from tacho_sdk import limits

    source = (ROOT.parents[1] / "packages" / "sdk" / "src" / "limits.ts").read_text()
    names = {"payloadDepthLevels": "PAYLOAD_LEVELS"}
    theirs = re.findall(r"^  (\w+): ([\d_]+),", source, re.M)
    assert len(theirs) >= 9
    for name, value in theirs:
        ours = names.get(name, re.sub("([A-Z])", r"_\1", name).upper())
        assert getattr(limits, ours) == int(value), name


def _no_such_option() -> None:
    """Never called: mypy fails if it does not see the wrong name."""
    tacho.configure(api_kye="key")  # type: ignore[call-arg]
