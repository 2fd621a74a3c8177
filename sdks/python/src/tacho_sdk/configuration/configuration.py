"""The runtime configuration from the service, checked before use."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Maximum prompts, and maximum policies: ten times what the service deploys. Every policy takes time in every decision.
_ITEMS_MAX = 5_000


@dataclass(frozen=True)
class PromptShare:
    """A version that `percent` of the sessions get, by a hash of the salt and the session."""

    percent: float
    salt: str
    version_id: str
    version: str
    content: str
    content_hash: str


@dataclass(frozen=True)
class DeployedPrompt:
    """The deployed version of a prompt."""

    prompt_id: str
    name: str
    version_id: str
    """Recorded as `promptVersionId` with the events that this version causes."""
    version: str
    content: str
    content_hash: str
    """SHA-256 of `content`, in lower-case hex."""
    share: PromptShare | None = None
    """Another version, for part of the sessions."""


@dataclass(frozen=True)
class Policy:
    """
    A policy: deployed, or in your own code. A newer service may send severities and actions that this SDK does not
    know; they fail closed.
    """

    policy_id: str
    name: str
    condition: str
    """CEL expression, see packages/policy/README.md."""
    action: str
    """ALLOW, WARN, REQUIRE_APPROVAL or BLOCK."""
    severity: str = "HIGH"
    """LOW, MEDIUM, HIGH or CRITICAL."""
    version: str = "1"
    description: str | None = None
    on_error: str | None = None
    """Whether a condition that cannot be evaluated counts as matched: act or ignore; None: by severity."""


@dataclass(frozen=True)
class ToolLabels:
    """Labels of the tools with a name: what they do, and what their outputs are. Rules add up."""

    tool: str
    """Name of the tool; one `*` stands for any characters."""
    output: Sequence[str] = ()
    """Labels of the output, for example `untrusted` or `private`."""
    does: Sequence[str] = ()
    """Labels of what the tool does, for example `external`, `destructive` or `money`."""
    when: str | None = None
    """CEL expression on `tool.input` and `tool.output`: the rule holds only where it is true."""


@dataclass(frozen=True)
class Configuration:
    """What is deployed in an environment."""

    revision: str
    prompts: tuple[DeployedPrompt, ...]
    policies: tuple[Policy, ...]
    tool_labels: tuple[ToolLabels, ...] = ()


class NotAConfiguration(Exception):
    """The message describes the error, without any content."""


def check_configuration(raw: object) -> Configuration:
    """
    Checks every shape and the hash of every prompt. One fault rejects the whole configuration; unknown fields are
    ignored. Raises NotAConfiguration.
    """
    if not isinstance(raw, dict):
        raise NotAConfiguration("it is not an object")
    revision, prompts, policies = raw.get("revision"), raw.get("prompts"), raw.get("policies")
    if not isinstance(revision, str) or revision == "":
        raise NotAConfiguration("revision is missing")
    return Configuration(
        revision,
        tuple(_prompt(item, index) for index, item in enumerate(_items(prompts, "prompts"))),
        tuple(_policy(item, index) for index, item in enumerate(_items(policies, "policies"))),
        tuple(_tool_labels(item) for item in _items(raw.get("toolLabels", []), "toolLabels")),
    )


def _items(raw_items: object, name: str) -> list[Any]:
    if not isinstance(raw_items, list):
        raise NotAConfiguration(f"{name} is not a list")
    if len(raw_items) > _ITEMS_MAX:
        raise NotAConfiguration(f"{name} has more than {_ITEMS_MAX} items")
    return raw_items


def _prompt(item: object, index: int) -> DeployedPrompt:
    place = f"prompts[{index}]"
    prompt_id, name, version_id, version, content, digest = _texts(
        item, place, "promptId name versionId version content contentHash"
    )
    _check_hash(place, content, digest)
    share = item.get("share") if isinstance(item, dict) else None
    return DeployedPrompt(prompt_id, name, version_id, version, content, digest, _share(share, place))


def _share(item: object, place: str) -> PromptShare | None:
    # If it is absent, or has a newer service's form, all sessions get the version in force.
    percent = item.get("percent") if isinstance(item, dict) else None
    if isinstance(percent, bool) or not isinstance(percent, (int, float)):
        return None
    try:
        salt, version_id, version, content, digest = _texts(item, place, "salt versionId version content contentHash")
    except NotAConfiguration:
        return None
    _check_hash(place, content, digest)
    return PromptShare(percent, salt, version_id, version, content, digest)


def _check_hash(place: str, content: str, digest: str) -> None:
    try:
        actual = hashlib.sha256(content.encode()).hexdigest()
    except UnicodeEncodeError:
        actual = None
    if actual != digest:
        raise NotAConfiguration(f"{place}.contentHash is wrong")


def _policy(item: object, index: int) -> Policy:
    policy_id, name, condition, action, severity, version = _texts(
        item, f"policies[{index}]", "policyId name condition action severity version"
    )
    optional = (item.get(name) for name in ("description", "onError")) if isinstance(item, dict) else (None, None)
    description, on_error = (value if isinstance(value, str) else None for value in optional)
    return Policy(policy_id, name, condition, action, severity, version, description, on_error)


def _tool_labels(item: object) -> ToolLabels:
    fields = item if isinstance(item, dict) else {}
    tool, when = fields.get("tool"), fields.get("when")
    output, does = fields.get("output", []), fields.get("does", [])
    lists = [labels for labels in (output, does) if isinstance(labels, list)]
    is_whole = len(lists) == 2 and all(isinstance(label, str) for labels in lists for label in labels)
    if not isinstance(tool, str) or not isinstance(when, (str, type(None))) or not is_whole:
        raise NotAConfiguration("toolLabels is not a list of labels")
    return ToolLabels(tool, tuple(output), tuple(does), when)


def _texts(item: object, place: str, names: str) -> list[str]:
    values = [item.get(name) for name in names.split()] if isinstance(item, dict) else []
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(names.split()):
        raise NotAConfiguration(f"{place} is incomplete")
    return texts
