"""Make the pictures of `README.md`, `figures.md` and `decisions.md` by running the code on these pages.

A block of Python that is followed by a picture is what made it, so that the two cannot drift apart.

    python docs/make_figures.py [FOLDER]
"""

from __future__ import annotations

import re
import sys
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).parent
PAGES = "figures.md", "decisions.md", "../README.md"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\n```text\n.*?^```$)?(?:\n+!\[[^]]*\]\((?P<picture>[^)]+)\))?",
    flags=re.M | re.S,
)


def make(folder: Path, dpi: int = 130) -> list[Path]:
    """Run the pages from top to bottom and write their pictures into a folder."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for page in PAGES:
        space: dict[str, object] = {"__name__": "figures"}
        with plt.style.context("default"):
            for block in BLOCK.finditer((HERE / page).read_text(encoding="utf-8")):
                exec(compile(block["code"], page, "exec"), space)
                if block["picture"]:
                    path = folder / Path(block["picture"]).name
                    drawn = BytesIO()
                    plt.gcf().savefig(drawn, dpi=dpi)
                    # A palette makes files a third as large.
                    Image.open(drawn).convert("RGB").quantize(256).save(path, optimize=True)
                    made.append(path)
                plt.close("all")
    return made


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "images" / "figures")
