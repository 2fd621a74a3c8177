"""Finds words of credentials first, and searches only around them, because most texts contain none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .credentials import (
    CREDENTIAL_FORMS,
    CREDENTIAL_MARK,
    HEADER_NAME,
    NAME_CHARS,
    NAMED,
    SPACES,
    KindOf,
    Match,
    bare_value,
    mask_assignments,
    value_at,
)
from .scanner import SCANNED_CHARS, scanner

# Every name of a credential contains one of these, in lower case.
_WORDS = "pass pwd secret key auth credential cookie jwt otp cvv cvc token bearer signature".split()
_KEYS = ("api", "access", "account", "private", "signing", "cryption")
# Characters that may stand between a name and its sign, in JSON text that may be encoded several times. Not a byte order
# mark, which `lower_of` replaces: Python would take twice as long to compile each of these sets.
_BETWEEN = r"(?:[\s\"'`\\]|(?<=\\)[nrtvf])"
# Follows a name: the sign that assigns its value, or the end of a JSON string that is the name.
_SIGN = rf"(?:{_BETWEEN}{{0,80}}[:=>]|{_BETWEEN}{{0,40}}[\"']{_BETWEEN}{{0,40}}[,}}\]]|{_BETWEEN}{{40}})"
# After a word that may stand anywhere in a name.
_ANYWHERE = rf"(?:[\w.-]{{64}}|[\w.-]{{0,63}}{_SIGN}|[^\"]{{0,{NAME_CHARS}}}\"{_BETWEEN}{{0,80}}[:,}}\]])"
_KEY_OF = "|".join(f"(?<={word}key)|(?<={word}[-_. ]key)" for word in _KEYS)
_TOKENS = rf"s{_BETWEEN}{{0,80}}[:=>]{{1,2}}(?!\s{{0,9}}\d[\d.,]{{0,20}}(?!\w))|s{_BETWEEN}{{80}}"
_FOLLOWED = r"(?:\s|\\|(?<=\\)[nrtvf]){1,40}(?=\S{0,64}[\d+/=_])[\w+/=.~-]{12}"
_OPTION = r"-\w[\w-]{0,63}\\{0,31}[\"'`]?(?:[\s,]|\\[nrtvf])"
# For lower-case text. Each begins with a letter that is rare in texts, which makes the search much faster.
_MAYBE_NAMED = [
    re.compile(pattern)
    for pattern in (
        rf"k(?:ey(?:{_KEY_OF}){_ANYWHERE}|ie(?<=cookie){_ANYWHERE}|en(?<=token)(?:{_SIGN}|{_TOKENS}))",
        rf"p(?:ass(?:(?:w|[-_. ]?(?:word|phrase|code)){_ANYWHERE}|{_SIGN})|wd{_SIGN}|(?<=otp){_SIGN})",
        rf"c(?:(?<=sec)ret{_ANYWHERE}|redential{_ANYWHERE}|url[\s\\])",
        rf"u(?<=au)th(?:orization{_ANYWHERE}|{_SIGN})",
        rf"v(?<=cv)[vc]2?{_SIGN}",
        rf"b(?:earer(?:{_SIGN}|{_FOLLOWED})|asic{_FOLLOWED})",
        rf"jwt{_SIGN}",
        rf"-(?:signature{_ANYWHERE}|{_OPTION})",
    )
]
_WORD_IN_OPTION = re.compile("pass|pwd|secret|key|auth|credential|cookie|jwt|otp|cv|token|bearer|signature")
# Keyed by a character that each match has: searching for an absent character takes no time.
_MAYBE_FORMS = [
    (pattern[0] if pattern[0] != "t" else "_", re.compile(pattern))
    for pattern in (
        r"-(?:BEGIN(?<=-----BEGIN)|(?:(?<=sk-)|(?<=xai-)|(?<=pypi-)|(?<=glpat-)|(?<=xox[abeoprs]-))[\w-]{10})",
        r"_(?:(?<=[sr]k_live_)|(?<=[sr]k_test_)|(?<=whsec_)|(?<=npm_)|(?<=gsk_)|(?<=gh[pousr]_)|(?<=github_pat_)|(?<=hf_))\w{10}",
        r"tacho(?:-[a-z]{1,16})?_\w{10}",
        r"I(?:(?:(?<=AKI)|(?<=ASI))A|(?<=AI)za)",
        r"J(?<=eyJ)[\w.-]{20}",
        r"9(?<=ya29)\.",
        r"G(?<=SG)\.",
        r"://[^/@]{0,1100}@",
    )
]


def may_hold_credentials(text: str) -> bool:
    """
    Whether a text or JSON text may contain a credential. False is certain. True is rare for texts that only mention passwords.
    Called for every event.
    """
    if len(text) >= SCANNED_CHARS and not scanner.may_match(text):
        return False
    lower = lower_of(text)
    for pattern in _MAYBE_NAMED[:-1]:
        if pattern.search(lower):
            return True
    for match in _MAYBE_NAMED[-1].finditer(lower):
        if match.group().startswith("-signature") or _WORD_IN_OPTION.search(match.group()):
            return True
    return may_hold_forms(text)


def may_hold_forms(text: str) -> bool:
    return any(character in text and pattern.search(text) for character, pattern in _MAYBE_FORMS)


def lower_of(text: str) -> str:
    """Lower case of the same length: only this letter has a longer one. A byte order mark counts as a space."""
    return text.replace("\u0130", "I").replace("\ufeff", " ").lower()


def mask_credentials(text: str, kind_of: KindOf) -> str:
    """Masks every credential in a text, if `kind_of` judges only by words of credentials."""
    if not may_hold_credentials(text):
        return text
    lower = lower_of(text)
    if may_hold_forms(text):
        for form in CREDENTIAL_FORMS:
            text = form.sub(_marked, text)
    elif "bearer" in lower or "basic" in lower or "curl" in lower:
        for form in CREDENTIAL_FORMS[-4:]:
            text = form.sub(_marked, text)
    places = _places(text)
    paired = mask_pairs(text, kind_of, places)
    return mask_assignments(paired, kind_of, _named_at_words(paired, places if paired == text else _places(paired)))


def _marked(match: Match) -> str:
    return (match.group(1) if match.re.groups else "") + CREDENTIAL_MARK


Place = tuple[int, int]


def _places(text: str) -> list[Place]:
    """Places of names with a word of credentials, in order."""
    lower = lower_of(text)
    places: set[Place] = set()
    for word in _WORDS:
        at = lower.find(word)
        while at >= 0:
            start, end = _name_around(text, at, at + len(word))
            places.add((start, end))
            at = lower.find(word, max(end, at + len(word)))
    return sorted(places)


_ON = re.compile(r"[\w.-]*", re.ASCII)
# Only generated texts are longer than this, and they are not names.
_NAME_CHARS = 4_096


def _name_around(text: str, start: int, end: int) -> tuple[int, int]:
    size = 32
    while True:
        from_ = max(0, start - size)
        # Match backwards from here. A forward search for a name that ends here would start at each character before it.
        back = _ON.match(text[from_:start][::-1])
        begin = start - (back.end() if back else 0)
        if begin > from_ or from_ == 0 or size >= _NAME_CHARS:
            break
        size *= 8
    on = _ON.match(text, end)
    return begin, on.end() if on else end


_PREFIX = re.compile(r"(?:api|access|account|private|signing|encryption|pass) \Z", re.ASCII | re.IGNORECASE)
_SPACE_NAMED = re.compile(r"<(?:[\w.-]{1,60}:)?\Z", re.ASCII)


def _named_at_words(text: str, places: list[Place]) -> Iterator[Match]:
    """The matches of NAMED whose names have a word of credentials."""
    for start, _ in places:
        before = max(0, start - 62)
        element = _SPACE_NAMED.search(text, before, start)
        prefix = _PREFIX.search(text, max(0, start - 11), start)
        for begin in (element and element.start(), prefix and prefix.start(), start):
            match = None if begin is None else NAMED.match(text, begin)
            if match:
                yield match
                break


_QUOTE_BEFORE = re.compile(r"(\\{0,15}[\"'])\Z")
# A name of several words, such as "db password".
_WORDS_BEFORE = re.compile(rf"(\\{{0,15}}\")(?![{SPACES}])[^\"\\]{{0,{NAME_CHARS}}}\Z")
_WORDS_AFTER = re.compile(rf"[^\"\\]{{0,{NAME_CHARS}}}")
_OPENS = re.compile(rf"[\[,][{SPACES}]{{0,99}}\Z")
_OPENS_PAIR = re.compile(rf"[\[,][{SPACES}]{{0,99}}\[[{SPACES}]{{0,99}}\Z")
_NAMES_VALUE = re.compile(rf"[\"'](?:name|key|header|field|variable)\\{{0,15}}[\"'][{SPACES}]{{0,9}}:[{SPACES}]{{0,9}}\Z", re.I)
_COMMA = re.compile(rf"[{SPACES}]{{0,99}},[{SPACES}]{{0,99}}")
_COLON = re.compile(rf"[{SPACES}]{{0,99}}:[{SPACES}]{{0,99}}")
_OPENS_KEY = re.compile(rf"[{{,](?:[{SPACES}]|\\{{1,15}}[nrt]){{0,99}}\Z")
_VALUE_KEY = re.compile(rf"[\"'](?P<key>val(?:ue)?s?|content|data)\\{{0,15}}[\"'][{SPACES}]{{0,9}}:[{SPACES}]{{0,9}}", re.I)
_ROLE = re.compile(r"[\"']role\\{0,15}[\"']")
# Characters before and after a name in which its object is searched.
_OBJECT_CHARS = 1_024
_BRACE = re.compile(r"[{}]")


def mask_pairs(text: str, kind_of: KindOf, places: list[Place] | None = None) -> str:
    """
    Masks values in JSON that is inside other text, or encoded again: values that follow their names in lists or in keys of
    several words, and values of objects that name them. A text that is JSON as a whole is decoded first.
    """
    spans: list[tuple[int, int]] = []
    # The inside of a masked value is not searched again: the time stays linear.
    done = 0
    for at, word_end in _places(text) if places is None else places:
        if at < done:
            continue
        quote, end = _QUOTE_BEFORE.search(text, max(0, at - 16), at), word_end
        is_word = quote is not None and text.startswith(quote[1], end)
        if not is_word:
            quote = _WORDS_BEFORE.search(text, max(0, at - NAME_CHARS - 16), at)
            words = _WORDS_AFTER.match(text, word_end)
            end = words.end() if words else word_end
        start = quote.end(1) if quote else at
        if not quote or not text.startswith(quote[1], end) or kind_of(text[start:end]) != "secret":
            continue
        after, before = end + len(quote[1]), text[max(0, quote.start() - 200) : quote.start()]
        comma, colon = _COMMA.match(text, after), None if is_word else _COLON.match(text, after)
        if comma and (_OPENS_PAIR.search(before) or (_OPENS.search(before) and HEADER_NAME.match(text[start:end]))):
            span = value_at(text, comma.end(), bare_value)
            spans += [span] if span else []
        elif colon and _OPENS_KEY.search(before):
            span = value_at(text, colon.end(), bare_value)
            spans += [span] if span else []
        elif _NAMES_VALUE.search(before):
            spans += _values_of(text, quote.start(), after)
        done = max(done, spans[-1][1]) if spans else 0
    masked: list[str] = []
    done = 0
    for begin, end in sorted(spans):
        if begin >= done:
            masked.append(f"{text[done:begin]}{CREDENTIAL_MARK}")
            done = end
    return "".join(masked) + text[done:]


def _values_of(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The places of the values in the object around a name."""
    opens = text.rfind("{", max(0, start - _OBJECT_CHARS), start)
    if opens < 0:
        return []
    closes = _BRACE.search(text, end, end + _OBJECT_CHARS)
    limit = closes.start() if closes else min(len(text), end + _OBJECT_CHARS)
    has_role = _ROLE.search(text, opens, limit) is not None
    values = []
    for key in _VALUE_KEY.finditer(text, opens, limit):
        if not (has_role and key["key"].lower() == "content"):
            span = value_at(text, key.end(), bare_value)
            values += [span] if span else []
    return values
