"""A prompt with variables."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .configuration import Configuration

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][\w.-]*)\s*\}\}", re.ASCII)


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

    def render(self, **variables: object) -> str:
        """
        The content with each `{{ name }}` replaced by its value. Placeholders inside values are not replaced. A
        placeholder without a value stays unchanged.
        """
        return _PLACEHOLDER.sub(lambda match: str(variables[match[1]]) if match[1] in variables else match[0], self.content)


def prompt_of(configuration: Configuration | None, name: str, fallback: str) -> Prompt:
    prompts = configuration.prompts if configuration else ()
    deployed = next((prompt for prompt in prompts if prompt.name == name), None)
    if deployed is None:
        return Prompt(name, fallback, None, None, True)
    return Prompt(name, deployed.content, deployed.version, deployed.version_id, False)
