"""Renew the printed results on pages.

The Python of a page is run from top to bottom, and replaces the text block after each block of code.

python docs/make_outputs.py PAGE ...
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$(?P<shown>\n\n```text\n.*?^```$)?", flags=re.M | re.S)


def renew(page: Path) -> None:
    """Run a page from top to bottom in an empty folder, and rewrite it if results have changed."""
    text = page.read_text(encoding="utf-8")
    space: dict[str, object] = {"__name__": "page"}

    def replace(match: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(match["code"], str(page), "exec"), space)
        lines = "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
        shown = f"\n\n```text\n{lines}\n```" if lines else ""
        return f"```python\n{match['code']}```{shown}"

    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            page.write_text(BLOCK.sub(replace, text), encoding="utf-8")
        finally:
            os.chdir(here)


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    for name in sys.argv[1:]:
        renew(Path(name).resolve())
