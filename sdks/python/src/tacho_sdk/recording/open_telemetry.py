"""
Uses OpenTelemetry if the host has imported it. The SDK depends on none of its packages. The SDK's own requests make no spans,
because no instrumentation covers http.client.
"""

from __future__ import annotations

import re
import sys

from ..exact import exact_text
from ..inner_class import inner_class

_TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})\Z")


@inner_class
class Trace:
    trace_id: str
    """32 hex digits."""
    span_id: str
    """16 hex digits."""
    flags: int

    @property
    def traceparent(self) -> str:
        """W3C Trace Context."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags & 255:02x}"


def active_trace() -> Trace | None:
    """The span that is active here."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    try:
        span_context = api.get_current_span().get_span_context()
        return (
            Trace(f"{span_context.trace_id:032x}", f"{span_context.span_id:016x}", int(span_context.trace_flags))
            if span_context.is_valid
            else None
        )
    except Exception:
        return None


def trace_of(traceparent: object) -> Trace | None:
    text = exact_text(traceparent)
    parent_match = None if text is None else _TRACEPARENT.match(text)
    return Trace(parent_match[1], parent_match[2], int(parent_match[3], 16)) if parent_match else None
