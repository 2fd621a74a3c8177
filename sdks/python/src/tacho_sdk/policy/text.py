"""Texts and numbers in the forms of JSON and JavaScript, so that every SDK shows and hashes them alike."""

from __future__ import annotations

import json
import math
from decimal import Decimal


def quoted(text: str) -> str:
    """The text as JSON."""
    return json.dumps(text, ensure_ascii=False)


def number_text(value: float) -> str:
    """The shortest text of a double, as from ECMAScript's Number::toString, which RFC 8785 uses."""
    if value == 0:
        return "0"
    shortest = repr(value)
    # Between 1e-4 and 1e16, Python writes the same text.
    if "e" not in shortest and "n" not in shortest:
        return shortest.removesuffix(".0")
    if math.isnan(value):
        return "NaN"
    sign = "-" if value < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    _, mantissa, exponent = Decimal(repr(abs(value))).as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, mantissa)).rstrip("0")
    # The value is 0.digits times ten to the power of `point`.
    point = len(mantissa) + exponent
    size = len(digits)
    if size <= point <= 21:
        return sign + digits + "0" * (point - size)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return f"{sign}{digits[0]}{'.' if size > 1 else ''}{digits[1:]}{power}"
