"""Card and account numbers in texts: recognised by their checksums, however they are grouped."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

# At most one of these stands between two groups of a number.
_SEPARATOR = "[ \u00a0\u2000-\u200a\u202f.\u00b7\u2010-\u2015-]"
_GROUP = re.compile(r"[A-Z\d]+", re.ASCII | re.IGNORECASE)
_ALNUM = re.compile(r"[A-Za-z\d]", re.ASCII)


@dataclass(frozen=True)
class NumberForm:
    run: re.Pattern[str]
    """Matches a sequence of digit groups that may contain a number of this form."""
    start: re.Pattern[str]
    """Matches the beginning of a number's first group."""
    min_chars: int
    max_chars: int
    is_valid: Callable[[str], bool]
    mark: str


def _is_card_number(digits: str) -> bool:
    """Luhn."""
    if len(set(digits)) == 1:
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _is_iban(iban: str) -> bool:
    """ISO 13616: modulo 97 of the number without its first four characters, and these after it, is 1."""
    return int("".join(str(int(char, 36)) for char in iban[4:] + iban[:4])) % 97 == 1


CARD_NUMBER = NumberForm(
    run=re.compile(rf"\d(?:{_SEPARATOR}?\d){{12,}}", re.ASCII),
    start=re.compile(r"\d", re.ASCII),
    min_chars=13,
    max_chars=19,
    is_valid=_is_card_number,
    mark="[masked:card]",
)
IBAN = NumberForm(
    run=re.compile(rf"\b[A-Z]{{2}}\d{{2}}(?:{_SEPARATOR}?[A-Z\d]){{11,}}", re.ASCII | re.IGNORECASE),
    start=re.compile(r"[A-Z]{2}\d{2}", re.ASCII | re.IGNORECASE),
    min_chars=15,
    max_chars=34,
    is_valid=_is_iban,
    mark="[masked:iban]",
)


def mask_numbers(text: str, form: NumberForm) -> str:
    """Masks every number that begins and ends with a group, the longest first: other digits may be next to it."""

    def mask_run(match: re.Match[str]) -> str:
        run = match.group()
        masked: list[str] = []
        done = 0
        for group in _GROUP.finditer(run):
            if group.start() < done or not form.start.match(group.group()):
                continue
            end = _end_of_number(run, group.start(), form)
            if end is None:
                continue
            masked.append(run[done : group.start()] + form.mark)
            done = end
        return "".join(masked) + run[done:]

    return form.run.sub(mask_run, text)


def _end_of_number(run: str, start: int, form: NumberForm) -> int | None:
    number = ""
    end = None
    for at in range(start, len(run)):
        if len(number) >= form.max_chars:
            break
        if not _ALNUM.match(run[at]):
            continue
        number += run[at]
        is_group_end = at + 1 == len(run) or not _ALNUM.match(run[at + 1])
        if is_group_end and len(number) >= form.min_chars and form.is_valid(number):
            end = at + 1
    return end
