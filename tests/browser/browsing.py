"""A headless Chromium with axe-core: the tests are skipped, with a reason, where it isn't found.

Playwright and axe-core come with the test extra. What they drive doesn't: any Chromium on PATH, or
CHROMIUM=/path/to/it; BROWSER_TESTS=required makes its lack a failure. The W3C's validator takes a Java
and `npm install vnu-jar`, with VNU=/folder/node_modules/vnu-jar/.../vnu.jar.
"""

import os
import shutil
from pathlib import Path

import pytest

ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
NAMES = ("chromium", "chromium-browser", "google-chrome")
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


def chromium() -> str:
    """Path of a Chromium; skips the test where there is none, or fails it if it has to be there."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found or not Path(found).exists():
        give_up = pytest.fail if os.environ.get("BROWSER_TESTS") == "required" else pytest.skip
        give_up("no Chromium: install one, or set CHROMIUM to its path")
    return found


def validator() -> list[str]:
    """The command of the W3C's HTML validator; skips the test where there is none."""
    jar = os.environ.get("VNU", "")
    if not Path(jar).is_file() or not shutil.which("java"):
        pytest.skip("no HTML validator: npm install vnu-jar, and set VNU to vnu.jar")
    return ["java", "-jar", jar]


def violations(page) -> list[str]:
    """What axe-core finds on a page, a line each; empty if nothing."""
    axe = pytest.importorskip("axe_playwright_python.base", reason="no axe-core: make setup")
    page.add_script_tag(path=axe.AXE_FILE_PATH)
    found = page.evaluate("rules => axe.run(document, rules)", RULES)
    assert len(found["passes"]) > 10  # it did look
    return [
        f"{rule['id']}: {rule['help']}: {node['html'][:150]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]
