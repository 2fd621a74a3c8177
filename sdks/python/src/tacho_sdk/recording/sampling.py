"""Whether a run or a session belongs to the sample. The hash of its id decides, so all its processes agree."""


def is_sampled(sampled_id: str, rate: float) -> bool:
    return rate >= 1 or _hash(sampled_id) < rate * 2**32


def _hash(text: str) -> int:
    """FNV-1a over UTF-16 units with a final mix, as in the SDKs of other languages."""
    value = 0x811C9DC5
    units = text.encode("utf-16-le", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (value ^ (units[at] | units[at + 1] << 8)) * 0x01000193 & 0xFFFFFFFF
    value = (value ^ value >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    return value ^ value >> 13
