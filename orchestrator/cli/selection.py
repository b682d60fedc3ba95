"""Selection of cases from the options of several commands."""


def with_cases(select: str | None, case_ids: list[str] | None) -> str | None:
    """``--case`` ids joined with the ``-k`` expression, as one expression."""
    if not case_ids:
        return select
    wanted = f"case in ({', '.join(case_ids)})"
    return f"({select}) and {wanted}" if select else wanted
