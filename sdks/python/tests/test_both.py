"""docs/sdk/both.md names what this SDK has, and nothing else. packages/sdk/test/both.test.ts does the same in TypeScript."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import tacho_sdk as tacho
from tacho_sdk.testing import FakeTacho

PAGE = Path(__file__).parents[3] / "docs" / "sdk" / "both.md"
# Parts of a client that the SDK itself uses.
INTERNAL = {"tacho.end_runs", "tacho.flush_at_end", "tacho.after_fork", "configuration.reset", "configuration.close"}
INTERNAL |= {"configuration.start"}


def members(noun: str, made: type) -> set[str]:
    names = {name for base in made.__mro__ if base.__module__.startswith("tacho_sdk") for name in vars(base)}
    return {f"{noun}.{name}" for name in names if not name.startswith("_")} - INTERNAL


def test_the_page_names_every_function_and_option_and_no_other() -> None:
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| ([^|]+) \|$", PAGE.read_text(encoding="utf-8"), re.M)[1:]
    assert len(rows) > 30
    named: set[str] = set()
    for cell in rows:
        names = re.findall(r"`([^`]+)`", cell)
        assert names or cell.startswith("none"), cell
        named |= set(names)
    functions = {name for name in tacho.__all__ if inspect.isfunction(getattr(tacho, name))}
    has = {
        *{"Tacho", "tacho.ThreadPoolExecutor", "tacho_sdk.testing.fake_tacho"},
        *{"tacho_sdk.testing.replay", "tacho_sdk.testing.replaying"},
        *{f"tacho.{name}" for name in functions},
        *members("tacho", tacho.Tacho),
        *members("run", tacho.Run),
        *members("configuration", tacho.RuntimeConfiguration),
        *{f"{name}=" for name in inspect.signature(tacho.Tacho).parameters},
        *{
            f"{options.__name__}.{field.name}"
            for options in (tacho.Masking, tacho.GuardDefaults, tacho.Loop, tacho.Budget, tacho.ToolLabels)
            for field in dataclasses.fields(options)
        },
        *members("fake", FakeTacho),
        "fake.tacho",
    }
    assert named == has


def test_every_function_of_the_module_is_a_method_of_a_client() -> None:
    alone = {"carry_runs", "client", "configure", "guard", "in_this_run"}
    for name in tacho.__all__:
        function = getattr(tacho, name)
        if inspect.isfunction(function) and name not in alone:
            assert callable(getattr(tacho.Tacho, name)), name
