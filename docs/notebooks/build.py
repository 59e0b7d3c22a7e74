"""Run the script of the notebook and write it with its outputs: `python docs/notebooks/build.py`.

The script is the source: cells start with `# %%`, text with `# %% [markdown]`. The notebook is made from it
and never edited. Needs extras: pip install 'calibrant[docs,files]'.
"""

import re
from pathlib import Path

HERE = Path(__file__).parent
SCRIPT, NOTEBOOK = HERE / "from_fit_to_decision.py", HERE / "from-fit-to-decision.ipynb"
LARGEST = 300_000  # bytes; a notebook is read in a browser and lives in the history


def cells(script):
    """Pairs of kind, "markdown" or "code", and text."""
    parts = re.split(r"^# %%(.*)\n", script, flags=re.M)
    assert not parts[0].strip(), "the script must start with a cell"
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        body = body.strip()
        if "[markdown]" in title:
            yield "markdown", re.sub(r"^# ?", "", body, flags=re.M)
        else:
            yield "code", body


def build():
    import nbformat
    from nbclient import NotebookClient

    make = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    made = [make[kind](text) for kind, text in cells(SCRIPT.read_text(encoding="utf-8"))]
    for i, cell in enumerate(made):
        cell["id"] = f"cell-{i}"  # by place, so that a new build differs only where the notebook does
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": kernel})
    NotebookClient(book, timeout=600, record_timing=False).execute()
    for cell in made:
        for output in cell.get("outputs", ()):
            assert output.get("name") != "stderr", f"a cell wrote to stderr: {output['text']}"
    book.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    text = nbformat.writes(book) + "\n"
    assert len(text.encode()) < LARGEST, f"the notebook has {len(text.encode())} bytes, at most {LARGEST}"
    NOTEBOOK.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    build()
