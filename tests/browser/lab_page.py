"""A lesson open in JupyterLab: what a person does with it, and what they see."""

from pathlib import Path
from typing import TYPE_CHECKING

from lab_server import Server
from lesson_files import ROOT

if TYPE_CHECKING:  # without Playwright the tests are skipped, not broken
    from playwright.sync_api import Browser, Page

SCRIPTS = [Path(__file__).with_name(name) for name in ("notebook.js", "measure.js")]
PICTURES = ROOT / "runs" / "browser"
WIDTH, HEIGHT = 1280, 900
AROUND = 200  # more than the menu, the tabs and the bars above and below a notebook, in pixels
OPEN_MS, RUN_MS = 120_000, 400_000
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


class Window:
    """One browser window with JupyterLab; `asked` keeps the addresses that it wanted."""

    def __init__(self, browser: "Browser", server: Server) -> None:
        self.server = server
        self.context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
        self.context.set_default_timeout(OPEN_MS)
        self.page: Page = self.context.new_page()
        self.asked: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        for script in SCRIPTS:
            self.page.add_init_script(path=script)

    def __enter__(self) -> "Window":
        return self

    def __exit__(self, *_: object) -> None:
        """Close the window, as a person does who leaves; kernels go on."""
        self.context.close()

    def open(self, path: str) -> "Lesson":
        """Open a lesson by its path, alone, and wait until it is there and its kernel answers."""
        token = f"token={self.server.token}"
        self.page.goto(f"{self.server.url}lab/tree/{path}?reset&{token}")
        return self.lesson(path)

    def lesson(self, path: str) -> "Lesson":
        """A lesson that somebody has opened; waits until it is there and its kernel answers."""
        lesson = Lesson(self, path)
        opened = "window.jupyterapp && course.panel(path)?.context.isReady"
        lesson.wait_until(f"{opened} && course.kernel(path)?.status === 'idle'", OPEN_MS)
        return lesson

    def choose(self, menu: str, entry: str) -> None:
        """Click through a menu, such as "Run", "Run All Cells"."""
        self.page.locator(".lm-MenuBar-itemLabel").get_by_text(menu, exact=True).click()
        self.page.locator(".lm-Menu-itemLabel").get_by_text(entry, exact=True).click()

    def theme(self, name: str) -> None:
        """Choose "light" or "dark", and wait until the page shows it."""
        self.page.evaluate(
            "theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", THEMES[name]
        )
        self.page.locator(f"body[data-jp-theme-name='{THEMES[name]}']").wait_for(state="attached")
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    def resize(self, width: int = WIDTH, height: int = HEIGHT) -> None:
        """Make the window as large as this, and wait until JupyterLab fills it."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.wait_for_function("course.fillsTheWindow()")


class Lesson:
    """A lesson that is open in a window."""

    def __init__(self, window: Window, path: str) -> None:
        self.window, self.page, self.path = window, window.page, path

    def ask(self, what: str, *more: object):
        """What `course.what(path, ...more)` of the scripts gives."""
        return self.page.evaluate(f"given => course.{what}(...given)", [self.path, *more])

    def wait_until(self, condition: str, milliseconds: int = RUN_MS) -> None:
        """Wait for a JavaScript condition on `path`."""
        self.page.wait_for_function(
            f"path => {condition}", arg=self.path, timeout=milliseconds, polling=200
        )

    def run_all(self) -> None:
        """Run all cells from the menu, and wait until the last one is done, or one has failed."""
        self.window.choose("Run", "Run All Cells")
        self.wait_until_finished()

    def wait_until_finished(self) -> None:
        """Wait until every cell has run, or one has failed."""
        self.wait_until("course.finished(path)")

    def run_until(self, number: int) -> None:
        """Run all cells above the code cell with this number, from the menu."""
        self.ask("select", number)
        self.window.choose("Run", "Run All Above Selected Cell")
        above = f"course.done(course.codeCells(path).slice(0, {number}))"
        self.wait_until(f"{above} && course.kernel(path).status === 'idle'")

    def type(self, number: int, source: str) -> None:
        """Replace what stands in the code cell with this number, as one who pastes does."""
        self.ask("select", number)
        for key in ("Enter", "Control+a"):
            self.page.keyboard.press(key)
        self.page.keyboard.insert_text(source)
        self.page.keyboard.press("Escape")
        assert self.ask("cells")[number]["source"] == source

    def number_of(self, words: str) -> int:
        """The number of the only code cell with these words."""
        (number,) = (i for i, cell in enumerate(self.ask("cells")) if words in cell["source"])
        return number

    def run_cell(self, number: int) -> dict:
        """Run the code cell with this number, the first is 0, and give what it shows."""
        before = self.ask("cells")[number]["count"]
        self.ask("select", number)
        self.page.keyboard.press("Control+Enter")
        again = f"cell.model.executionCount !== {before or 'null'} && course.done([cell])"
        self.wait_until(f"(cell => {again})(course.codeCells(path)[{number}])")
        self.wait_until("course.kernel(path).status === 'idle'")
        return self.ask("cells")[number]

    def save(self) -> None:
        """Save it with the keyboard, and wait until that is done."""
        self.page.keyboard.press("Control+s")
        self.wait_until("!course.panel(path).context.model.dirty")

    def take_picture(self, name: str) -> None:
        """Keep a picture of the whole lesson, top to bottom, under runs/browser/."""
        self.window.resize()  # a narrower window has a longer page
        self.window.resize(height=self.ask("height") + AROUND)
        self.ask("scrollToTop")
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png")
        self.window.resize()
