"""A prompt with variables."""

from __future__ import annotations

import datetime
import enum
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import TYPE_CHECKING

from ..recording.plain import binary_mark, dump, read_safely, to_plain, well_formed_json
from ..recording.sampling import is_sampled
from .configuration import Configuration, DeployedPrompt, PromptShare

if TYPE_CHECKING:
    from ..delivery.diagnostics import Diagnostics
    from ..recording.context import RunScope

# A placeholder, with any name that a host may give a value.
_PLACEHOLDER = re.compile(r"\{\{\s*([^{}\s](?:[^{}]{0,254}?[^{}\s])?)\s*\}\}")
# `{{#if}}` and the like stay: they belong to a template language.
_NAME = re.compile(r"\w[\w.-]*\Z")
_LEVELS = 200


@dataclass(frozen=True)
class Prompt:
    """The deployed version, or the fallback from the code if none is deployed."""

    name: str
    content: str
    """Includes its placeholders."""
    version: str | None
    """Version of the deployed prompt; None for the fallback."""
    version_id: str | None
    """Recorded as `promptVersionId`; None for the fallback. Inside a run, the SDK attaches it."""
    is_fallback: bool
    _diagnostics: Diagnostics | None = field(default=None, repr=False, compare=False)

    def render(self, **variables: object) -> str:
        """
        The content with each `{{ name }}` replaced by its value; objects and lists as JSON. Placeholders inside values are not
        replaced. A placeholder without a value stays unchanged, and a diagnostic names it.
        """

        def filled(match: re.Match[str]) -> str:
            if match[1] in variables:
                return read_safely(lambda: _text_of(variables[match[1]]), "[unreadable]")
            if self._diagnostics is not None and _NAME.match(match[1]):
                message = f"The prompt {self.name!r} has the variable {match[1]!r}, which render did not get."
                self._diagnostics.report("warning", "prompt_variable_missing", message)
            return match[0]

        return _PLACEHOLDER.sub(filled, self.content)


def _text_of(value: object) -> str:
    if isinstance(value, enum.Enum):
        return _text_of(value.value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return binary_mark(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    is_object = isinstance(value, (bool, Mapping, list, tuple, set, frozenset)) or is_dataclass(value)
    if value is not None and not is_object and not hasattr(value, "model_dump") and _has_text(value):
        return str(value)
    fields, _ = well_formed_json(to_plain({"value": value}, _LEVELS).value)
    plain = fields.get("value")
    return plain if isinstance(plain, str) else dump(plain)


def _has_text(value: object) -> bool:
    """Whether the value has a text of its own, not only its address in memory."""
    kind = type(value)
    return kind.__str__ is not object.__str__ or kind.__repr__ is not object.__repr__ or callable(value)


def prompt_of(
    configuration: Configuration | None,
    name: str,
    fallback: str,
    diagnostics: Diagnostics | None = None,
    scope: RunScope | None = None,
) -> Prompt:
    """The version that the run's session gets, or the run if it has none. Outside of runs, it is the version in force."""
    prompts = configuration.prompts if configuration else ()
    prompt = next((prompt for prompt in prompts if prompt.name == name), None)
    if prompt is None:
        return Prompt(name, fallback, None, None, True, diagnostics)
    share = prompt.share
    deployed: DeployedPrompt | PromptShare = prompt
    if share is not None and scope is not None:
        session = scope.run_id if scope.session_id is None else scope.session_id
        deployed = share if is_sampled(f"{share.salt}:{session}", share.percent / 100) else prompt
    return Prompt(name, deployed.content, deployed.version, deployed.version_id, False, diagnostics)
