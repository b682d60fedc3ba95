"""Words that verdicts and reports share."""


def plural(count: int, one: str, many: str = "") -> str:
    """``1 case``, ``2 cases``"""
    return f"{count} {one if count == 1 else many or one + 's'}"
