"""
The name of `tacho_sdk` before 0.1.0, for one release: the same modules, not copies of them, and one warning.

A single module and no package: where the other project named `tacho` is installed, its package is found first, and neither
overwrites the other's files.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import tacho_sdk


class _FormerName(MetaPathFinder, Loader):
    """Answers `tacho.x` with the module `tacho_sdk.x` itself."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name.startswith("tacho.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module("tacho_sdk" + spec.name.removeprefix("tacho"))
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has replaced the specification of the module by one with the former name.
        if module.__spec__ is not None:
            module.__spec__ = self._specs[module.__spec__.name]


warnings.warn("The module tacho is named tacho_sdk now: write `import tacho_sdk as tacho`", FutureWarning, stacklevel=2)
sys.meta_path.insert(0, _FormerName())
sys.modules[__name__] = tacho_sdk
