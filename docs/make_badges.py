"""Make the badges of the README from the metadata of the package.

python docs/make_badges.py
"""

from __future__ import annotations

import tomllib
from pathlib import Path

HERE = Path(__file__).parent
WIDTH, PADDING = 6.6, 12
BADGE = """<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="20" role="img">
<title>{label}: {value}</title>
<rect width="{total}" height="20" rx="3" fill="#4a4a4a"/>
<path d="M{left} 0h{right_flat}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right_flat}z" fill="#1f6fb2"/>
<g fill="#fff" font-family="DejaVu Sans,Verdana,sans-serif" font-size="11" text-anchor="middle">
<text x="{left_middle}" y="14">{label}</text><text x="{right_middle}" y="14">{value}</text>
</g></svg>
"""


def badge(label: str, value: str) -> str:
    """Draw one badge as SVG."""
    left, right = (round(len(text) * WIDTH + PADDING) for text in (label, value))
    return BADGE.format(
        label=label,
        value=value,
        left=left,
        total=left + right,
        right_flat=right - 3,
        left_middle=left / 2,
        right_middle=left + right / 2,
    )


def make(folder: Path) -> None:
    """Write all badges into a folder."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    badges = {
        "version": ("version", project["version"]),
        "python": ("python", project["requires-python"].removeprefix(">=") + "+"),
        "licence": ("licence", project["license"]),
        "types": ("types", "mypy strict"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, (label, value) in badges.items():
        (folder / f"{name}.svg").write_text(badge(label, value), encoding="utf-8")


if __name__ == "__main__":
    make(HERE / "images" / "badges")
