"""Recognises credentials by the name of their field, by their form, and by an assignment such as `password=…` in a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal

# White space of JavaScript, for use inside brackets, so that the masks of both languages find the same.
SPACES = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_S = f"[{SPACES}]"

Match = re.Match[str]

# Parts of names, without escapes. The whole name, and its surroundings, decide the rest.
_PARTS = (
    r"pass(?:w|[-_. ]?(?:word|phrase|code))|secret"
    r"|(?:api|access|account|private|signing|cryption)[-_. ]?key|authorization|credential|cookie"
)
_WORDS = r"jwt|otp|auth|cv[vc]2?"
_SECRET_NAME = re.compile(rf"{_PARTS}|-signature|^-{{0,2}}(?:bearer|(?:x-)?(?:{_WORDS}))\Z|token\Z", re.ASCII | re.IGNORECASE)
# `pass` and `pwd` only as separate words: DB_PASS and dbPass, but not compass.
_SECRET_WORD = re.compile(r"(?:^|[-_. a-z\d])P(?:ass|wd)\Z|(?:^|[-_. ])(?:pass|pwd|PASS|PWD)\Z", re.ASCII)
# Texts under such a name are secrets; numbers are usage counters.
_COUNTER_NAME = re.compile(r"tokens\Z", re.ASCII | re.IGNORECASE)

NameKind = Literal["secret", "counter", "plain"]
"""`counter`: its numbers are no secrets, other values are."""

CREDENTIAL_MARK = "[masked:credential]"


# A longer text is a name only without other characters, such as spaces. A shorter one is a name only without quotes.
NAME_CHARS = 64
_NAME = re.compile(r"[\w.-]*\Z", re.ASCII)


def kind_of_name(name: str) -> NameKind:
    if _NAME.match(name) is None if len(name) > NAME_CHARS else '"' in name:
        return "plain"
    if _SECRET_NAME.search(name) or _SECRET_WORD.search(name):
        return "secret"
    return "counter" if _COUNTER_NAME.search(name) else "plain"


# Well-known forms: their beginning up to a rare character, and the rest.
_FORMS = [
    (r"-----BEGIN", r" [A-Z0-9 ]{0,30}PRIVATE KEY-----(?:[^-]|-(?!----END))*"),
    (r"A[KS]I", r"A[A-Z0-9]{16}\b"),
    (r"(?:sk|xai|pypi)-", r"[\w-]{16,}"),
    (
        r"(?:[sr]k_(?:live|test)|whsec|npm|gsk|gh[pousr]|github_pat|hf|tacho(?:-[a-z]{1,16})?)_",
        r"\w{16,}",
    ),
    (r"(?:glpat|xox[abeoprs])-", r"[A-Za-z0-9-]{10,}"),
    (r"AI", r"za[\w-]{30,}"),
    (r"(?:ya29|SG)\.", r"[\w-]{16,}"),
    # JSON Web Tokens: base64 of `{"`.
    (r"eyJ", r"[\w.-]{20,}"),
]


class _CurlUsers:
    """Passwords in the options of `curl` for a user, also in the second one: `curl -u ada:S3 --proxy-user ada:S3`."""

    _USER = re.compile(rf"(-u(?:ser)?[{SPACES}=]{{0,4}}[\"']?[^{SPACES}:\"']{{1,64}}:)[^{SPACES}\"'`]{{1,1024}}")
    _AFTER_CURL = re.compile(rf"curl{_S}[^\n\r\u2028\u2029]{{0,300}}\Z")

    def sub(self, marked: Callable[[Match], str], text: str) -> str:
        def mask(user: Match) -> str:
            begin = user.start()
            return marked(user) if self._AFTER_CURL.search(text, max(0, begin - 305), begin) else user.group()

        return self._USER.sub(mask, text)


# Each keeps its first group, if it has one, and masks the rest.
CREDENTIAL_FORMS: list[re.Pattern[str] | _CurlUsers] = [
    # A form does not match inside a word, but an escape such as \n may come before it.
    *(re.compile(rf"(?<!(?<!\\)\w){begin}{pattern_end}", re.ASCII) for begin, pattern_end in _FORMS),
    # A word without a digit or sign is prose, such as "basic understanding".
    re.compile(rf"\b(?:Bearer|Basic){_S}{{1,4}}(?=[^{SPACES}]{{0,64}}[\d+/=_])[\w+/=.~-]{{12,}}", re.ASCII | re.IGNORECASE),
    # The password in an address, or the only text before its `@`.
    re.compile(rf"(://[^{SPACES}/:@\[]{{0,64}}:)[^{SPACES}/\"'`]{{1,1024}}(?=@)", re.ASCII),
    re.compile(rf"(https?://)[^{SPACES}/:@?#\"'`]{{1,1024}}(?=@)", re.ASCII | re.IGNORECASE),
    _CurlUsers(),
]

# A name, perhaps quoted, with the sign that assigns; an option that ends with a space; an XML element. The host of an
# address is no name.
NAMED = re.compile(
    r"(?<![\w.-])(?<!//)(?:"
    r"(?P<name>(?:(?:api|access|account|private|signing|encryption|pass) )?[\w.-]+)\\{0,15}[\"'`]?"
    rf"{_S}*(?P<sign>[:=]{{1,2}}>?)"
    rf"|(?P<option>--\w[\w-]{{0,63}})\\{{0,15}}[\"'`]?[{SPACES},](?!{_S}{{0,9}}-)"
    rf"){_S}*"
    rf"|<(?:[\w.-]{{1,60}}:)?(?P<element>[\w.-]{{1,64}})>{_S}*",
    re.ASCII | re.IGNORECASE,
)
# A quoted value up to its closing quote, which has as many backslashes as the opening one.
_QUOTED = re.compile(r"(\\{0,15})([\"'`])(?:(?!(?<!\\)\1\2)[\s\S])*", re.ASCII)
# A list or an object, to its first end.
_NESTED = re.compile(r"[\[{][^\]}]*[\]}]?")
bare_value = re.compile(rf"(?:[^{SPACES}\"'`&,;\\]|\\(?![\"'`nrt]))+", re.ASCII)
# The value of a header may have spaces and semicolons, and may follow its name in a list.
HEADER_NAME = re.compile(r"^(?:(?:set-)?cookie|(?:proxy-)?authorization|(?:x|-)-[\w-]+)\Z", re.ASCII | re.IGNORECASE)
# The rest of a line, with the quoted parameters of a header. A quote after the padding of Base64 ends the value.
_LINE = re.compile(r"(?:=\\{0,15}\"(?=[^" + SPACES + r",;)}\]\\])[^\r\n\"\\]{0,1024}\\{0,15}\"?|[^\r\n\"'`\\])+", re.ASCII)
# A block of YAML: the lines after `|` or `>` that are indented.
_BLOCK = re.compile(r"[|>](?:[^\r\n]|[\r\n]{1,9}[ \t])+")
_ELEMENT = re.compile(r"(?:<!)?[^<]{1,9999}(?=</)")
# Assigned, but no secret.
_HARMLESS = re.compile(r"(?:true|false|null|undefined|None|True|False)\Z")


KindOf = Callable[[str], NameKind]


def mask_assignments(text: str, kind_of: KindOf, matches: Iterable[Match] | None = None) -> str:
    """Masks assigned values in linear time. `kind_of` judges names. `matches`: matches of `NAMED`, by default all."""
    masked: list[str] = []
    done = 0
    for match in NAMED.finditer(text) if matches is None else matches:
        if match.start() < done:
            continue
        name = match["name"] or match["option"] or match["element"]
        kind = kind_of(name)
        if kind == "plain":
            continue
        is_header = match["sign"] == ":" and HEADER_NAME.match(name) is not None
        span = value_at(text, match.end(), _ELEMENT if match["element"] else _LINE if is_header else bare_value)
        if span is None:
            continue
        content = text[span[0] : span[1]]
        if kind == "counter" and is_count(content):
            continue
        masked.append(f"{text[done : span[0]]}{CREDENTIAL_MARK}")
        done = span[1]
    return "".join(masked) + text[done:]


def value_at(text: str, start: int, bare: re.Pattern[str]) -> tuple[int, int] | None:
    """Place of a value, without its opening quote. None: there is no value, or it is harmless."""
    quoted = _QUOTED.match(text, start)
    value = quoted or _NESTED.match(text, start) or _BLOCK.match(text, start) or bare.match(text, start)
    if not value:
        return None
    begin = start + (len(quoted.group(1)) + 1 if quoted else 0)
    content = text[begin : value.end()]
    return None if content == "" or (not quoted and _HARMLESS.match(content)) else (begin, value.end())


_COUNT = re.compile(r"\[?-?(?:\d[\d.,]{0,20}(?:e[+-]?\d{1,9})?|Infinity|NaN)(?!\w)", re.ASCII | re.IGNORECASE)


def is_count(text: str) -> bool:
    """
    Whether a text begins with a number, such as `-5` or `1e3`, or the mark `[NaN]`. These stay, so that the service can report
    numbers that it cannot count.
    """
    return _COUNT.match(text) is not None
