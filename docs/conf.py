"""Configuration of the documentation site.

    python -m sphinx -W -b html docs build/site

The site needs the extra `docs` and no network. Every warning is an error in `.ci/run`.
"""

from __future__ import annotations

import posixpath
import re
from importlib.metadata import version as installed
from pathlib import Path

import calibrant

ROOT = Path(__file__).resolve().parents[1]

project = "calibrant"
author = "calibrant developers"
copyright = "calibrant developers"
release = version = installed("calibrant")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",
    "numpydoc",
    "myst_nb",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["**/README.md", "gallery", "auto_gallery/*.ipynb", "notebooks/*.py", "examples", "_build"]
templates_path = ["_templates"]
html_static_path = ["_static"]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}
nb_execution_mode = "off"  # the notebook holds its results; docs/notebooks/build.py renews them

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4

# Reference
autosummary_generate = True
# calibrant.torch is documented without PyTorch, and without the methods that its classes inherit.
autodoc_mock_imports = ["torch", "torchmetrics", "triton"]
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
toc_object_entries = False
add_module_names = False
default_role = "code"

# Gallery: figures made by the scripts in docs/gallery
sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["auto_gallery"],
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 10_000,
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "write_computation_times": False,
}

# Pages
html_theme = "pydata_sphinx_theme"
html_title = f"calibrant {calibrant.__version__}"
html_logo = None
html_favicon = "_static/icon.svg"
html_show_sourcelink = False
html_copy_source = False
html_css_files = ["site.css"]
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "logo": {"text": "calibrant"},
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": []}

# Files of the repository that are pages of the site, and where they are.
INCLUDED = {
    "CHANGELOG.md": "research/changes.md",
    "CONTRIBUTING.md": "research/contributing.md",
    "benchmarks/README.md": "research/benchmarks.md",
    "README.md": "index.md",
    "docs/methods/README.md": "explanation/methods.md",
}
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]*)(#[^)\s]*)?\)")


def resolve_links(text: str, folder: str, page: str) -> str:
    """Make links between files of the repository links between pages of the site.

    Parameters
    ----------
    text : str
        Markdown.
    folder : str
        Folder of the file that holds the text, relative to the repository.
    page : str
        Name of the page that shows it.
    """

    def replace(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        if not (ROOT / path).exists():  # a page that is generated
            return match[0]
        inside = INCLUDED.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if inside is None or not inside.endswith(".md"):
            return label if label.startswith("`") else f"{label} (`{path}`)"
        return f"[{label}]({posixpath.relpath(inside, posixpath.dirname(page) or '.')}{anchor})"

    return LINK.sub(replace, text)


def read_source(app, page: str, source: list[str]) -> None:
    """Resolve links of a page, and those of a file that it includes."""
    if match := re.fullmatch(r"\s*```\{include\} (\S+)\n```\s*", source[0]):
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), match[1]))
        source[0] = (ROOT / path).read_text(encoding="utf-8")
        folder = posixpath.dirname(path)
    else:
        folder = posixpath.join("docs", posixpath.dirname(page))
    source[0] = resolve_links(source[0], folder, page).replace("```mermaid\n", "```text\n")


def escape_help(app, context, lines: list[str]) -> None:
    """Escape characters of help texts that are markup in reStructuredText."""
    lines[:] = [re.sub(r"(?<!\\)([*_]|(?<=.)\|)", r"\\\1", line) for line in lines]


def setup(app) -> None:
    """Register the hooks."""
    app.connect("source-read", read_source)
    app.connect("sphinx-click-process-description", escape_help)
    app.connect("sphinx-click-process-epilog", escape_help)
