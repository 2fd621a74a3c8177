"""
Token counts of a model call, by the names that providers and frameworks give them. The same table as
`packages/contract/src/record/usage-shapes.ts`, which says how names are read.
`packages/contract/vectors/usage-shapes.json` tests both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

_NAMES = {
    "promptTokens": (
        "promptTokens",
        "inputTokens",
        "inputTokens.total",
        "promptTokenCount",
        "inputTokenCount",
        "inputTextTokenCount",
        "promptEvalCount",
        "billedUnits.inputTokens",
        "tokens.inputTokens",
        "tokens",
        "input",
        "prompt",
    ),
    "completionTokens": (
        "completionTokens",
        "outputTokens",
        "outputTokens.total",
        "generationTokens",
        "candidatesTokenCount",
        "responseTokenCount",
        "outputTokenCount",
        "generatedTokenCount",
        "evalCount",
        "billedUnits.outputTokens",
        "tokens.outputTokens",
        "output",
        "completion",
    ),
    "totalTokens": (
        "totalTokens",
        "totalTokenCount",
        "total",
    ),
    "cachedTokens": (
        "cachedTokens",
        "cacheReadTokens",
        "cacheReadInputTokens",
        "cachedInputTokens",
        "cachedPromptTokens",
        "numCachedTokens",
        "promptTokensDetails.cachedTokens",
        "promptTokensDetails.cacheRead",
        "promptDetails.cacheRead",
        "promptDetails.cacheInput",
        "cacheRead.inputTokens",
        "details.cacheReadTokens",
        "details.cacheReadInputTokens",
        "details.cachedTokens",
        "details.cachedContentTokens",
        "promptTokenDetails.cachedTokens",
        "inputTokensDetails.cachedTokens",
        "inputTokenDetails.cachedTokens",
        "inputTokenDetails.cacheReadTokens",
        "inputTokenDetails.cacheRead",
        "inputDetails.cacheRead",
        "inputTokens.cacheRead",
        "cachedContentTokenCount",
        "cacheReadInputTokenCount",
        "promptCacheHitTokens",
        "inputCachedTokens",
        "inputCacheRead",
    ),
    "cacheWriteTokens": (
        "cacheWriteTokens",
        "cacheCreationInputTokens",
        "cacheWriteInputTokens",
        "cacheCreationTokens",
        "promptTokensDetails.cacheWriteTokens",
        "promptTokensDetails.cacheCreationTokens",
        "promptDetails.cacheWrite",
        "cacheCreation.inputTokens",
        "cacheWrite.inputTokens",
        "details.cacheWriteTokens",
        "details.cacheCreationInputTokens",
        "inputTokensDetails.cacheWriteTokens",
        "inputTokenDetails.cacheWriteTokens",
        "inputTokenDetails.cacheCreation",
        "inputDetails.cacheWrite",
        "inputTokens.cacheWrite",
        "cacheWriteInputTokenCount",
        "inputCacheCreation",
    ),
    "cacheWrite1hTokens": (
        "cacheWrite1hTokens",
        "cacheCreation.ephemeral1hInputTokens",
        "inputTokenDetails.ephemeral1hInputTokens",
        "cacheDetails[1h]",
        "promptTokensDetails.cacheCreationTokenDetails.ephemeral1hInputTokens",
    ),
    "reasoningTokens": (
        "reasoningTokens",
        "completionTokensDetails.reasoningTokens",
        "completionTokensDetails.reasoning",
        "completionDetails.reasoning",
        "reasoning.outputTokens",
        "outputTokensDetails.reasoningTokens",
        "outputTokensDetails.thinkingTokens",
        "outputTokenDetails.reasoningTokens",
        "outputTokenDetails.reasoning",
        "outputDetails.reasoning",
        "outputTokens.reasoning",
        "details.reasoningTokens",
        "details.thinkingTokens",
        "details.thoughtsTokens",
        "thoughtsTokenCount",
        "outputReasoningTokens",
        "outputReasoning",
    ),
    "audioInputTokens": (
        "audioInputTokens",
        "inputAudioTokens",
        "promptTokensDetails.audioTokens",
        "promptTokensDetails.audio",
        "promptDetails.audio",
        "details.inputAudioTokens",
        "inputTokensDetails.audioTokens",
        "inputTokenDetails.audioTokens",
        "inputTokenDetails.audio",
        "inputDetails.audio",
        "promptTokensDetails[AUDIO]",
    ),
    "cachedAudioTokens": (
        "cachedAudioTokens",
        "cacheAudioReadTokens",
        "details.cacheAudioReadTokens",
        "promptTokensDetails.cachedTokensDetails.audioTokens",
        "inputTokenDetails.cachedTokensDetails.audioTokens",
        "cacheTokensDetails[AUDIO]",
    ),
    "imageInputTokens": (
        "imageInputTokens",
        "inputImageTokens",
        "promptTokensDetails.imageTokens",
        "inputTokensDetails.imageTokens",
        "inputTokenDetails.imageTokens",
        "inputDetails.image",
        "promptDetails.image",
        "promptTokensDetails[IMAGE]",
    ),
    "cachedImageTokens": (
        "cachedImageTokens",
        "inputTokenDetails.cachedTokensDetails.imageTokens",
        "cacheTokensDetails[IMAGE]",
    ),
    "audioOutputTokens": (
        "audioOutputTokens",
        "outputAudioTokens",
        "completionTokensDetails.audioTokens",
        "completionTokensDetails.audio",
        "completionDetails.audio",
        "details.outputAudioTokens",
        "outputTokensDetails.audioTokens",
        "outputTokenDetails.audioTokens",
        "outputTokenDetails.audio",
        "outputDetails.audio",
        "candidatesTokensDetails[AUDIO]",
        "responseTokensDetails[AUDIO]",
    ),
    "imageOutputTokens": (
        "imageOutputTokens",
        "outputImageTokens",
        "completionTokensDetails.imageTokens",
        "outputTokensDetails.imageTokens",
        "outputTokenDetails.imageTokens",
        "outputDetails.image",
        "candidatesTokensDetails[IMAGE]",
    ),
}
_CACHE_APART = {
    "inputTokens": re.compile("cache(?:Read|Write|Creation)InputTokens"),
    "inputTokenCount": re.compile("cache(?:Read|Write)InputTokenCount"),
}
_REASONING_APART = {"candidatesTokenCount", "responseTokenCount"}
_WITH_PARTS = {"inputTokens", "outputTokens", "tokens"}
TOKENS_MAX = 1_000_000_000
_ITEMS_MAX = 100
# Names of the cost in a usage, as the service reads them.
_COST_NAMES = ("cost", "total_cost", "costUSD", "response_cost")

_Steps = Sequence[tuple[str, str]]
_Path = tuple[str, _Steps, "str | None"]
_Found = tuple[str, object]


def _path_of(name: str) -> _Path:
    path, _, modality = name.rstrip("]").partition("[")
    return name, [(step, _snake(step)) for step in path.split(".")], modality or None


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]|\d\w", lambda letter: f"_{letter[0].lower()}", name)


_PATHS = {count: [_path_of(name) for name in names] for count, names in _NAMES.items()}
_MORE_PROMPT = [_path_of("toolUsePromptTokenCount")]


# The paths that can lead to a value, by the names of a usage's members. A provider sends the same few names each time.
_plans: dict[tuple[str, ...], dict[str, list[_Path]]] = {}


def _paths_in(usage: Mapping[str, object]) -> dict[str, list[_Path]]:
    if type(usage) is not dict or len(usage) > 50 or not all(type(name) is str for name in usage):
        return _PATHS
    names = tuple(usage)
    plan = _plans.get(names)
    if plan is None:
        has = usage.__contains__
        plan = {count: [path for path in paths if any(map(has, path[1][0]))] for count, paths in _PATHS.items()}
        if len(_plans) < 100 and sum(map(len, names)) < 1_000:
            _plans[names] = plan
    return plan


def call_usage(usage: object) -> dict[str, int | None] | None:
    """
    The usage in the contract's terms. None: no tokens are reported. Parts of zero tokens are left out. A
    completion that cannot be read is None: if it were missing, the call would count as one without an answer, as in
    embeddings.
    """
    usage = _members_of(usage)
    if usage is None:
        return None
    found_counts: dict[str, _Found | None] = dict.fromkeys(_PATHS)
    for count, paths in _paths_in(usage).items():
        found_counts[count] = _first_of(usage, paths)
    if _name_of(found_counts["promptTokens"]).startswith("billedUnits"):
        # Cohere bills only a part of its prompt, but its cached tokens belong to the whole prompt.
        found_counts["cachedTokens"] = found_counts["cacheWriteTokens"] = None

    def count_in(count: str) -> int:
        return _count_of(found_counts[count]) or 0

    prompt, completion, total = (_count_of(found_counts[name]) for name in ("promptTokens", "completionTokens", "totalTokens"))
    read, written = count_in("cachedTokens"), count_in("cacheWriteTokens")
    more = _count_of(_first_of(usage, _MORE_PROMPT)) or 0
    apart = _CACHE_APART.get(_name_of(found_counts["promptTokens"]))
    names = [_name_of(found_counts["cachedTokens"]), _name_of(found_counts["cacheWriteTokens"])]
    beside_input = _besides(usage, "input", found_counts, ("promptTokens", "cachedTokens", "cacheWriteTokens"))
    beside_output = _besides(usage, "output", found_counts, ("completionTokens", "reasoningTokens"))
    reasoning = count_in("reasoningTokens")

    def whole_prompt(known: int) -> int:
        parts = read + written if beside_input is None else beside_input
        # OpenLLMetry sends Anthropic's names, but with the cached tokens in the input. Only its total shows this.
        is_within = parts <= known and total == known + (completion or 0)
        is_named_apart = beside_input is not None or (apart is not None and any(apart.fullmatch(name) for name in names))
        is_apart = parts > known or (not is_within and is_named_apart) or total == known + parts + (completion or 0)
        return max(known + more + (parts if is_apart else 0), count_in("audioInputTokens") + count_in("imageInputTokens"))

    def whole_completion(known: int) -> int:
        parts = reasoning if beside_output is None else beside_output
        is_within = beside_output is not None and parts <= known and total == (prompt_tokens or 0) + known
        is_named_apart = beside_output is not None or _name_of(found_counts["completionTokens"]) in _REASONING_APART
        is_apart = parts > known or (not is_within and is_named_apart) or total == (prompt_tokens or 0) + known + parts
        return max(known + (parts if is_apart else 0), count_in("audioOutputTokens") + count_in("imageOutputTokens"))

    prompt_tokens = _at_least(prompt, total, whole_prompt)
    completion_tokens = _at_least(completion, total, whole_completion)
    if total is not None and (prompt_tokens != prompt or completion_tokens != completion):
        total = max(total, (prompt_tokens or 0) + (completion_tokens or 0))
    if prompt_tokens is None and completion_tokens is None and total is None:
        return None
    wholes = {"promptTokens": prompt_tokens, "completionTokens": completion_tokens, "totalTokens": total}
    parts = {
        **{count: count_in(count) for count, sent in found_counts.items() if sent is not None and count not in wholes},
        "cacheWrite1hTokens": min(written, count_in("cacheWrite1hTokens")),
        "cachedAudioTokens": min(read, count_in("audioInputTokens"), count_in("cachedAudioTokens")),
        "cachedImageTokens": min(read, count_in("imageInputTokens"), count_in("cachedImageTokens")),
    }
    known: dict[str, int | None] = {name: count for name, count in wholes.items() if count is not None}
    is_said = found_counts["completionTokens"] is not None or _says_none(usage, _PATHS["completionTokens"])
    if completion_tokens is None and total is None and is_said:
        known["completionTokens"] = None
    return {**known, **{name: count for name, count in parts.items() if count > 0}}


def _besides(
    usage: Mapping[str, object], word: str, found_counts: Mapping[str, _Found | None], names: Sequence[str]
) -> int | None:
    """Langfuse subtracts each part from the whole, whatever its name, and adds up all names that contain the word."""
    whole, *parts = (found_counts[name] for name in names)
    if _name_of(whole) != word:
        return None
    others = [value for name, value in usage.items() if name != word and word in name.lower() and "cost" not in name.lower()]
    elsewhere = [_count_of(usage_part) for usage_part in parts if word not in _name_of(usage_part).lower()]
    return sum(count for count in [*map(_count, others), *elsewhere] if count is not None)


def _says_none(usage: Mapping[str, object], paths: Sequence[_Path]) -> bool:
    return any(name in usage and usage[name] is None for _, steps, _ in paths if len(steps) == 1 for name in steps[0])


def gateway_cost(*places: object) -> float | None:
    """The cost that a gateway reports, in the first of these places that has one. AI Gateway reports it as text."""
    for place in places:
        stated = _members_of(place) or {}
        for name in _COST_NAMES:
            counted = stated.get(name)
            # Perplexity sends an object with the parts of the cost.
            cost = _amount((_members_of(counted) or {}).get("total_cost", counted))
            if cost is not None:
                return cost
    return None


def metadata_cost(usage: object, metadata: object) -> float | None:
    """`gateway_cost`, also from the members that a gateway adds to an answer."""
    added = [*(_members_of(metadata) or {}).values()]
    return gateway_cost(usage, *added, *((_members_of(one) or {}).get("usage") for one in added))


def _amount(given: object) -> float | None:
    if type(given) not in (int, float, str):
        return None
    try:
        cost = float(given)  # type: ignore[arg-type]
    except ValueError:
        return None
    return cost if 0 <= cost < math.inf else None


def _at_least(sent: int | None, total: int | None, with_parts: Callable[[int], int]) -> int | None:
    if sent is None and total is not None:
        return None
    return with_parts(sent or 0) or sent


def _count_of(found_count: _Found | None) -> int | None:
    return _count(found_count[1]) if found_count is not None else None


def _count(value: object) -> int | None:
    """A token count. Bridges send numbers as texts."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,10}", value):
        value = int(value)
    return value if type(value) is int and 0 <= value <= TOKENS_MAX else None


def _name_of(found_count: _Found | None) -> str:
    return found_count[0] if found_count is not None else ""


def _first_of(usage: Mapping[str, object], paths: Sequence[_Path]) -> _Found | None:
    with_parts: _Found | None = None
    for name, steps, modality in paths:
        value = _value_at(usage, steps)
        if modality is not None:
            value = _of_modality(value, modality)
        members = _members_of(value) if name in _WITH_PARTS else None
        if value is None:
            continue
        if members is None:
            return name, value
        if with_parts is None and any(member is not None for member in members.values()):
            with_parts = name, value
    return with_parts


def _value_at(fields: object, steps: _Steps) -> object:
    if not steps:
        return fields
    if isinstance(fields, list):
        sent = [value for value in (_value_at(item, steps) for item in fields[:_ITEMS_MAX]) if value is not None]
        counts = [count for count in map(_count, sent) if count is not None]
        unread = [value for value in sent if _count(value) is None]
        return unread[0] if unread else (sum(counts) if counts else None)
    members = _members_of(fields) or {}
    for name in steps[0]:
        value = members.get(name)
        if value is not None:
            return _value_at(value, steps[1:])
    return None


def _of_modality(items: object, modality: str) -> object:
    for item in items[:_ITEMS_MAX] if isinstance(items, list) else []:
        members = _members_of(item) or {}
        if members.get("modality", members.get("ttl")) == modality:
            return members.get("tokenCount", members.get("token_count", members.get("inputTokens")))
    return None


def _members_of(value: object) -> Mapping[str, object] | None:
    """The members of a mapping, or of a client's model."""
    return value if isinstance(value, Mapping) else getattr(value, "__dict__", None)
