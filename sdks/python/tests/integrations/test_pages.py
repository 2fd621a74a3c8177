"""The code of the integrations' pages runs unchanged, with the real library and a scripted model."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import tacho_sdk as tacho
from conftest import Client, Service

from .model_server import FINAL, ModelServer

PAGES = Path(__file__).parents[4] / "docs" / "integrations"
LIBRARIES = {
    "openai": "openai",
    "anthropic": "anthropic",
    "openai-agents": "agents",
    "langchain": "langgraph",
    "pydantic-ai": "pydantic_ai",
    "crewai": "crewai",
}


def test_every_page_is_known() -> None:
    assert {page.stem for page in PAGES.glob("python-*.md")} == {f"python-{name}" for name in LIBRARIES}


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_code_of_the_page_runs(
    name: str,
    service: Service,
    model: ModelServer,
    make: Callable[..., Client],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip(LIBRARIES[name])
    monkeypatch.setenv("OPENAI_BASE_URL", f"{model.url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
    monkeypatch.setattr(tacho, "_client", make().tacho)
    page = PAGES / f"python-{name}.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    exec(compile(code, page.name, "exec"), {"__name__": "__main__"})
    assert FINAL in capsys.readouterr().out
    tacho.flush(120)
    assert len({event["runId"] for event in service.events}) == 1
    kinds = [event["eventType"] for event in service.events]
    assert (kinds.count("LLM_CALL"), kinds.count("TOOL_CALL"), kinds[-1]) == (2, 3, "SESSION_OUTCOME")
