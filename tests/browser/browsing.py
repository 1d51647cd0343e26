"""A headless Chromium with axe-core, where they are: neither belongs to the course's locks.

To have these tests run: `pip install playwright`, a Chromium (CHROMIUM=/path/to/it if it isn't
on PATH), and `npm install axe-core` in any folder, with AXE=/folder/node_modules/axe-core. The W3C's
validator takes a Java and `npm install vnu-jar`, with VNU=/folder/node_modules/vnu-jar/.../vnu.jar.
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
    """Path of a Chromium; skips the test where there is none."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found or not Path(found).exists():
        pytest.skip("no Chromium: install one, or set CHROMIUM to its path")
    return found


def axe() -> Path:
    """Path of axe.min.js; skips the test where there is none."""
    folder = os.environ.get("AXE")
    script = Path(folder or "node_modules/axe-core") / "axe.min.js"
    if not script.is_file():
        pytest.skip("no axe-core: npm install axe-core, and set AXE to its folder")
    return script


def validator() -> list[str]:
    """The command of the W3C's HTML validator; skips the test where there is none."""
    jar = os.environ.get("VNU", "")
    if not Path(jar).is_file() or not shutil.which("java"):
        pytest.skip("no HTML validator: npm install vnu-jar, and set VNU to vnu.jar")
    return ["java", "-jar", jar]


def violations(page, script: Path) -> list[str]:
    """What axe-core finds on a page, a line each; empty if nothing."""
    page.add_script_tag(path=str(script))
    found = page.evaluate("rules => axe.run(document, rules)", RULES)
    assert len(found["passes"]) > 10  # it did look
    return [
        f"{rule['id']}: {rule['help']}: {node['html'][:150]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]
