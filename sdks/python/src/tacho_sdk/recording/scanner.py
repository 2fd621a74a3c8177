"""
A faster first search for credentials, if the package `hyperscan` is installed (the extra `fast`): one pass over a text for all
patterns. The patterns match everything that `credential_words` searches for, and more. `credential_words` then searches texts
with a match, so the result is the same without the package.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

_NAMES = (
    r"pass|pwd|secret|(?:api|access|account|private|signing|cryption)[-_. ]?key|auth|credential|cookie|jwt|otp|cv[vc]|token"
    r"|bearer|-signature"
)
_SPACES = r"\s\x1c-\x1f\\nrtvf"
_BETWEEN = rf"[{_SPACES}\"'`]"
_PATTERNS = (
    # A name, followed by a sign that assigns, by the end of a JSON text, or by so many characters that these may be hidden.
    rf"(?i)(?:{_NAMES})(?:[\w.-]*{_BETWEEN}*(?:[:=>]|[\"']{_BETWEEN}*[,}}\]]|{_BETWEEN}{{20}})|[\w.-]{{30}})",
    rf"(?i)(?:{_NAMES})[^\"]{{0,64}}\"{_BETWEEN}*[:,}}\]]",
    rf"(?i)(?:bearer|basic)[{_SPACES}]+\S*[\d+/=_]",
    r"(?i)curl[\s\x1c-\x1f\\]",
    r"--\w",
    # The well-known forms.
    r"-----BEGIN|(?:sk|xai|pypi|glpat|xox[abeoprs])-[\w-]{10}|A[KS]IA|AIza|eyJ[\w.-]{10}|ya29\.|SG\.",
    r"(?:[sr]k_live|[sr]k_test|whsec|npm|gsk|gh[pousr]|github_pat|hf|tacho(?:-[a-z]+)?)_\w{10}",
    r"://[^/@]*@",
)
# In a shorter text, the search alone is faster than scanning first.
SCANNED_CHARS = 256

Scan = Callable[[str], bool]


class Scanner:
    """The patterns are compiled at the first use, by the thread that sends: it takes a tenth of a second."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._database: Any = None
        self._is_missing = False

    def may_match(self, text: str) -> bool:
        """False is certain: the text contains no credential. True also if the scanner cannot decide."""
        if self._is_missing or not text.isascii() or not self._lock.acquire(blocking=False):
            return True
        try:
            if self._database is None:
                self._database = _compiled()
            matched: list[int] = []
            self._database.scan(text.encode(), match_event_handler=lambda number, *_: matched.append(number))
            return bool(matched)
        except Exception:
            self._is_missing = True
            return True
        finally:
            self._lock.release()


def _compiled() -> Any:
    import hyperscan

    database = hyperscan.Database()
    flags = hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_DOTALL
    database.compile(expressions=[pattern.encode() for pattern in _PATTERNS], flags=flags)
    return database


scanner = Scanner()
