"""An executed notebook as one HTML file that needs no network."""

import re
import warnings

from nbformat import NotebookNode

MATH = re.compile(r"\$[^$\n]+\$|\\\(|\\\[")


def to_html(notebook: NotebookNode) -> str:
    """Render `notebook` as JupyterLab does, its images embedded.

    The template loads scripts from the web. Widgets and diagrams, which lessons don't use,
    go without them; MathJax stays where there is math to set (offline, it reads as TeX).
    """
    from nbconvert import HTMLExporter  # half a second: only where a page is made

    math = any(c.cell_type == "markdown" and MATH.search(c.source) for c in notebook.cells)
    options = {} if math else {"mathjax_url": ""}
    exporter = HTMLExporter(
        template_name="lab", embed_images=True, require_js_url="", jquery_url="", **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a picture without alternative text, for instance
        return exporter.from_notebook_node(notebook)[0]
