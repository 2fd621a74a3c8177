"""Card and account numbers in texts: recognised by their checksums, however they are grouped."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate

from ..inner_class import inner_class

# At most one of these stands between two groups of a number.
_SEPARATOR = "[ \u00a0\u2000-\u200a\u202f.\u00b7\u2010-\u2015-]"
_GROUP = re.compile(r"[A-Z\d]+", re.ASCII | re.IGNORECASE)

IsNumber = Callable[[int, int], bool]


@inner_class
class NumberForm:
    run: re.Pattern[str]
    """Matches a sequence of digit groups that may contain a number of this form."""
    start: re.Pattern[str]
    """Matches the beginning of a number's first group."""
    min_chars: int
    max_chars: int
    checking: Callable[[str], IsNumber]
    """Takes the characters of a run without separators, and checks whether a part of them is a number."""
    mark: str


def _card_numbers(digits: str) -> IsNumber:
    """Luhn by prefix sums over the run: one with the digits at even places doubled, one with those at odd places."""
    plain = [int(digit) for digit in digits]
    doubled = [digit * 2 - 9 if digit > 4 else digit * 2 for digit in plain]
    sums = [
        list(accumulate((values[at % 2][at] for at in range(len(plain))), initial=0))
        for values in ((doubled, plain), (plain, doubled))
    ]
    # For each end, where the equal digits before it begin.
    equal_from = [0]
    for at, digit in enumerate(plain):
        equal_from.append(equal_from[at] if at > 0 and plain[at - 1] == digit else at)

    def is_number(begin: int, end: int) -> bool:
        of_end = sums[end % 2]
        return (of_end[end] - of_end[begin]) % 10 == 0 and equal_from[end] > begin

    return is_number


def _ibans(chars: str) -> IsNumber:
    """ISO 13616: with its first four characters moved to the end, the number modulo 97 is 1."""
    values = [str(int(char, 36)) for char in chars]
    digits = "".join(values)
    places = list(accumulate(map(len, values), initial=0))

    def is_number(begin: int, end: int) -> bool:
        after = places[begin + 4]
        return int(digits[after : places[end]] + digits[places[begin] : after]) % 97 == 1

    return is_number


CARD_NUMBER = NumberForm(
    run=re.compile(rf"\d(?:{_SEPARATOR}?\d){{12,}}", re.ASCII),
    start=re.compile(r"\d", re.ASCII),
    min_chars=13,
    max_chars=19,
    checking=_card_numbers,
    mark="[masked:card]",
)
IBAN = NumberForm(
    run=re.compile(rf"\b[A-Z]{{2}}\d{{2}}(?:{_SEPARATOR}?[A-Z\d]){{11,}}", re.ASCII | re.IGNORECASE),
    start=re.compile(r"[A-Z]{2}\d{2}", re.ASCII | re.IGNORECASE),
    min_chars=15,
    max_chars=34,
    checking=_ibans,
    mark="[masked:iban]",
)


def mask_numbers(text: str, form: NumberForm) -> str:
    """Masks numbers that begin and end with a group. Tries the longest first, because other digits may be next to it."""

    def mask_run(match: re.Match[str]) -> str:
        run = match.group()
        groups = list(_GROUP.finditer(run))
        sizes = list(accumulate((group.end() - group.start() for group in groups), initial=0))
        is_number = form.checking("".join(group.group() for group in groups))
        masked: list[str] = []
        done = 0
        for index, group in enumerate(groups):
            if group.start() < done or not form.start.match(group.group()):
                continue
            begin, last = sizes[index], None
            for at in range(index + 1, min(len(sizes), index + form.max_chars + 1)):
                size = sizes[at] - begin
                if size > form.max_chars:
                    break
                if size >= form.min_chars and is_number(begin, sizes[at]):
                    last = groups[at - 1]
            if last is not None:
                masked.append(run[done : group.start()] + form.mark)
                done = last.end()
        return "".join(masked) + run[done:]

    return form.run.sub(mask_run, text)
