"""An executed notebook as one HTML file that needs no network."""

import re
import warnings
from itertools import chain

from nbformat import NotebookNode

# Scripts that JupyterLab's template would load from the web, and the Markdown that needs
# them. Offline, such Markdown shows as its source; nothing else depends on a script.
SCRIPTS = {
    "html_head_js_requirejs": re.compile(r"(?!)"),  # only for widgets: lessons have none
    "html_head_js_mathjax": re.compile(r"\$[^$\n]+\$|\\\(|\\\[|\\begin\{"),
    "html_head_js_mermaidjs": re.compile(r"^\s*```+mermaid", re.MULTILINE),
}


def to_html(notebook: NotebookNode, title: str) -> str:
    """Render `notebook` as JupyterLab does, with its images embedded."""
    from nbconvert import HTMLExporter  # half a second: only where a page is made

    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    dropped = (name for name, needed in SCRIPTS.items() if not needed.search(prose))
    blocks = (f"{{% block {name} %}}{{% endblock %}}" for name in dropped)
    template = "\n".join(chain(["{% extends 'lab/index.html.j2' %}"], blocks))
    exporter = HTMLExporter(raw_template=template, embed_images=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a picture without alternative text, for instance
        body, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": title}})
    return body
