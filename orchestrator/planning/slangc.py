"""Where slangc is, an optional compiler: whether a case in Slang can be planned at all (decision 0020).

The wheel slangtorch ships slangc and its libraries; the PyTorch that it asks for serves another use.
"""

import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path

SLANG_SUFFIX = ".slang.j2"
"""Of the names of templates in Slang."""
MISSING = "slangc is not installed: pip install --no-deps slangtorch"
_TOOL = "slangc"


@cache
def find_slangc() -> Path | None:
    """The wheel's program of this interpreter, else one on PATH."""
    spec = find_spec("slangtorch")
    if spec is not None and spec.origin is not None:
        shipped = Path(spec.origin).parent / "bin" / _TOOL
        if shipped.is_file():
            return shipped
    on_path = shutil.which(_TOOL)
    return None if on_path is None else Path(on_path)
