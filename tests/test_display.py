import base64
import io
import os
import subprocess
import sys
import unicodedata

import html5lib
import numpy as np
import pytest
import tinycss2
from display_capture import shown

from course_utils import display
from course_utils.display import _publish
from course_utils.display._table import TABLE

pytestmark = pytest.mark.usefixtures("shell")

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror="alert(1)">',
    "' onmouseover='alert(1)",
    "</td></tr></table><h1>out</h1>",
    "&amp; &lt;b&gt; &nosuch;",
    "first\nsecond\r\nthird\u2028fourth",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b(B end",
    "nul\x00 bell\x07 surrogate\ud800 delete\x7f c1\x9b31m",
    "שלום \u202eevil\u202c",
    "日本 👩‍🚀 e\u0301",
    "x" * 500,
]


def parsed(data):
    """Parse the HTML strictly: any error in it raises."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parseFragment(
        data["text/html"]
    )


def text_of(element):
    return "".join(element.itertext())


def cells(tree, tag="td"):
    return [text_of(cell) for cell in tree.iter(tag)]


def columns_of(text):
    """Terminal columns, counted independently of the implementation."""
    total, joined = 0, False
    for char in text:
        if char == "\u200d":
            joined = True
        elif not unicodedata.combining(char) and not joined:
            total += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        else:
            joined = False
    return total


def everything_with(text):
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(1, 1), dpi=20)
    return [
        shown(display.show_table, [text, "n"], [[text, 1], ["b", text]], title=text),
        shown(display.show_bars, [(text, 1.0), ("b", 2.0)], text, unit=text),
        shown(display.show_note, text, "warn"),
        shown(display.show_figure, figure, text),
    ]


CALM_TAGS = [
    [
        "DOCUMENT_FRAGMENT",
        "caption",
        "table",
        "tbody",
        *["td"] * 4,
        *["th"] * 2,
        "thead",
        *["tr"] * 3,
    ],
    sorted(
        ["DOCUMENT_FRAGMENT", "caption", "table", "tbody", "span", *["tr", "th", "div", "span"] * 2]
        + ["td"] * 6
    ),
    ["DOCUMENT_FRAGMENT", "bdi", "div", "strong"],
    ["DOCUMENT_FRAGMENT", "img"],
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_user_text_becomes_markup(text):
    for (data, _), tags in zip(everything_with(text), CALM_TAGS, strict=True):
        tree = parsed(data)
        found = sorted(element.tag for element in tree.iter() if element.tag != "br")
        assert found == tags
        names = {name for element in tree.iter() for name in element.attrib}
        assert names <= {"style", "align", "scope", "colspan", "aria-hidden", "src", "alt", "width"}


@pytest.mark.parametrize("text", HOSTILE)
def test_no_control_character_reaches_a_terminal_or_a_page(text):
    for data, _ in everything_with(text):
        for form in (data["text/plain"], data["text/html"]):
            assert not {c for c in form if unicodedata.category(c) in ("Cc", "Cs")} - {"\n"}
            assert "\u202e" not in form
            form.encode()


@pytest.mark.parametrize("text", HOSTILE)
def test_all_lines_of_a_table_have_the_same_width(text):
    data, _ = shown(display.show_table, [text, "日本"], [[text, 1], ["e\u0301", text]])
    assert len({columns_of(line) for line in data["text/plain"].split("\n")}) == 1
    assert len(data["text/plain"].split("\n")) == 4


def test_visible_text_survives_escaping():
    for text in HOSTILE[:5]:
        data, _ = shown(display.show_table, ["a"], [[text]], title=text)
        assert cells(parsed(data)) == [text]
        assert text_of(parsed(data).find(".//caption")) == text
        assert text in data["text/plain"]


def test_a_line_break_is_a_break_in_html_and_a_sign_in_text():
    data, _ = shown(display.show_table, ["a"], [["one\ntwo"]])
    assert "one<br>two" in data["text/html"]
    assert "one ⏎ two" in data["text/plain"]


def test_ansi_sequences_leave_only_their_text():
    data, _ = shown(
        display.show_note, "\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"
    )
    assert data["text/plain"] == "» Note: red link"


def test_a_table_says_what_its_header_cells_belong_to():
    data, _ = shown(display.show_table, ["split", "images"], [["train", 60000]], title="Data")
    tree = parsed(data)
    assert text_of(tree.find(".//caption")) == "Data"
    assert [th.get("scope") for th in tree.iter("th")] == ["col", "col"]
    assert data["text/plain"] == (
        "Data\nsplit  images\n─────  ──────\ntrain  60,000"  # aligned for a terminal
    )


def test_numbers_stand_right_and_text_left_unless_told_otherwise():
    row = ["a", 1, "12.5 %", None, True]
    heads = ["text", "int", "share", "none", "bool"]
    data, _ = shown(display.show_table, heads, [row, ["b", 2, "<3", None, False]])
    expected = ["left", "right", "right", "right", "left"]
    assert [td.get("align") for td in parsed(data).iter("td")] == expected * 2
    data, _ = shown(display.show_table, ["a", "b"], [["x", 1]], aligns=["center", None])
    assert [td.get("align") for td in parsed(data).iter("td")] == ["center", "right"]
    for td in parsed(data).iter("td"):
        assert f"text-align:{td.get('align')}" in td.get("style")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (235146, "235,146"),
        (-1000, "-1,000"),
        (True, "yes"),
        (np.bool_(False), "no"),
        (None, "\u2013"),
        (0.123456, "0.1235"),
        (0.5, "0.5"),
        (-0.0, "0"),
        (999.96, "1,000"),
        (123456.7, "123,457"),
        (3e-5, "3e-05"),
        (1.5e12, "1.5e+12"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (np.float32(0.1), "0.1"),
        (np.int64(12345), "12,345"),
        (np.array(7), "7"),
        ("0.10", "0.10"),
        ((28, 28), "(28, 28)"),
        (np.dtype("float32"), "float32"),
    ],
)
def test_a_value_reads_by_one_rule(value, text):
    assert display.format_value(value) == text


def test_jax_scalars_read_as_numbers():
    jnp = pytest.importorskip("jax.numpy")
    assert display.format_value(jnp.float32(0.25)) == "0.25"
    assert display.format_value(jnp.bfloat16(2)) == "2"
    data, _ = shown(display.show_table, ["loss"], [[jnp.float32(2.3026)]])
    assert cells(parsed(data)) == ["2.303"]


def test_floats_of_a_column_share_their_decimals_when_of_similar_size():
    data, _ = shown(display.show_table, ["a", "b"], [[0.8123, 1.0], [0.79, 1234.5], [1, None]])
    assert cells(parsed(data)) == ["0.8123", "1", "0.7900", "1,234", "1", "\u2013"]


def test_no_rows_is_a_table_that_says_so():
    data, _ = shown(display.show_table, ["a", "b"], [])
    assert cells(parsed(data)) == ["no rows"]
    assert parsed(data).find(".//td").get("colspan") == "2"
    assert data["text/plain"].split("\n")[-1].strip() == "no rows"
    data, _ = shown(display.show_bars, [], "Nothing")
    assert "no rows" in data["text/plain"]
    assert cells(parsed(data)) == ["no rows"]


def test_rows_may_come_from_a_generator():
    data, _ = shown(display.show_table, ("a",), ((i,) for i in range(2)))
    assert cells(parsed(data)) == ["0", "1"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([], []), "at least one column name"),
        (("ab", []), "at least one column name"),
        ((["a", " "], []), "header 1 is empty"),
        ((["a", None], []), "header 1 is empty"),
        ((["a", "b"], [[1, 2], [3]]), r"row 1 has 1 values: expected 2, one for each of a, b"),
        ((["a"], [[1], "x"]), r"row 1 is 'x': expected a list of 1 values"),
        ((["a"], [5]), "row 0 is 5"),
        ((["a"], [[1]], None, ["left", "left"]), "aligns has 2 entries: expected 1"),
        ((["a"], [[1]], None, ["middle"]), r"aligns\[0\] is 'middle': expected one of left"),
    ],
)
def test_a_malformed_table_is_refused_by_naming_the_place(args, message):
    with pytest.raises(ValueError, match=message):
        display.show_table(*args)


def bars(text):
    return text.split("\n")[1:]


def test_the_best_bar_is_marked_in_words_and_the_direction_said():
    data, _ = shown(display.show_bars, {"eager": 9100.0, "jit": 58200.0}, "Speed", "examples/s")
    eager, jit = bars(data["text/plain"])
    assert data["text/plain"].startswith("Speed (higher is better)\n")
    assert jit.endswith("58,200 examples/s  ★ highest")
    assert "highest" not in eager
    assert "highest" in text_of(list(parsed(data).iter("tr"))[1])
    data, _ = shown(display.show_bars, [("a", 2), ("b", 1)], "Time", "ms", lower_is_better=True)
    assert data["text/plain"].startswith("Time (lower is better)\n")
    assert bars(data["text/plain"])[1].endswith("1 ms  ★ lowest")


def test_bars_are_as_long_as_their_values():
    data, _ = shown(display.show_bars, {"a": 100, "b": 50, "c": 1e-9, "d": 0}, "x")
    assert [line.count("█") for line in bars(data["text/plain"])] == [24, 12, 0, 0]
    assert "▏" in bars(data["text/plain"])[2]  # above zero: at least a sliver
    widths = [
        value[0].representation
        for span in parsed(data).iter("span")
        for name, value in declarations(span.get("style"))
        if name == "min-width"
    ]
    assert widths == ["100.0", "50.0", "0.0"]


def test_bars_stay_bars_where_styles_are_stripped():
    data, _ = shown(display.show_bars, {"a": 100, "b": 50}, "x")
    drawn = [text_of(tr.find(".//div")) for tr in parsed(data).iter("tr")]
    assert drawn == ["█" * 24, "█" * 12]
    assert [div.get("aria-hidden") for div in parsed(data).iter("div")] == ["true", "true"]


def test_what_cannot_be_a_bar_is_said_in_words():
    rows = {"ok": 2.0, "nan": float("nan"), "inf": float("inf"), "minus": -1.0, "none": None}
    data, _ = shown(display.show_bars, rows, "x", unit="ms")
    ok, nan, inf, minus, none = bars(data["text/plain"])
    assert ok.endswith("2 ms  ★ highest")
    assert nan.endswith("nan ms  not a number")
    assert inf.endswith("inf ms  infinite")
    assert minus.endswith("-1 ms  below zero")
    assert none.endswith("\u2013  not measured")
    assert "█" not in nan + inf + minus + none
    assert len(list(parsed(data).iter("div"))) == 1


def test_nothing_is_best_among_equals_or_alone():
    for rows in ({"a": 0, "b": 0}, {"a": 3}, {"a": 1, "b": float("nan")}):
        data, _ = shown(display.show_bars, rows, "x")
        assert "highest" not in data["text/plain"]


def test_numpy_values_are_drawn():
    data, _ = shown(display.show_bars, {"a": np.float32(1), "b": np.int64(2)}, "x")
    assert bars(data["text/plain"])[1].count("█") == 24


@pytest.mark.parametrize(
    ("rows", "title", "message"),
    [
        ({"a": 1}, " ", "needs a title"),
        ([("a", 1), ("b",)], "x", "row 1 is .*expected a pair"),
        (["ab"], "x", "row 0 is 'ab'"),
        ([(" ", 1)], "x", "row 0 has no label"),
        ({"a": "fast"}, "x", r"row 0 \(a\) is 'fast': expected a number"),
        ({"a": True}, "x", r"row 0 \(a\) is True"),
        ({"a": np.ones(2)}, "x", r"row 0 \(a\)"),
    ],
)
def test_a_malformed_bar_is_refused_by_naming_the_row(rows, title, message):
    with pytest.raises(ValueError, match=message):
        display.show_bars(rows, title)


@pytest.mark.parametrize(
    ("kind", "start"), [("info", "» Note: "), ("good", "✓ Good: "), ("warn", "⚠ Warning: ")]
)
def test_a_note_says_its_kind_in_words(kind, start):
    data, _ = shown(display.show_note, "one\ntwo", kind)
    assert data["text/plain"] == f"{start}one\n  two"
    assert text_of(parsed(data)) == f"{start}onetwo"


def test_a_note_without_message_or_with_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="needs a message"):
        display.show_note(" \n")
    with pytest.raises(ValueError, match=r"kind is 'red': expected one of info, good, warn"):
        display.show_note("x", "red")


def test_a_figure_is_an_opaque_png_that_says_what_it_shows():
    import matplotlib.figure
    from PIL import Image

    figure = matplotlib.figure.Figure(figsize=(2, 1), dpi=50, facecolor="none")
    figure.subplots().set_xlabel("step")
    data, metadata = shown(display.show_figure, figure, 'loss "falls" & rests')
    img = parsed(data).find(".//img")
    assert data["text/plain"] == 'Figure: loss "falls" & rests'
    assert img.get("alt") == metadata["image/png"]["alt"] == 'loss "falls" & rests'
    png = base64.b64decode(data["image/png"])
    image = Image.open(io.BytesIO(png)).convert("RGBA")
    assert image.getpixel((0, 0)) == (255, 255, 255, 255)
    assert abs(image.width - 2 * metadata["image/png"]["width"]) <= 1


def test_a_figure_is_closed_so_that_it_shows_once():
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, _ = plt.subplots(figsize=(1, 1), dpi=20)
    shown(display.show_figure, figure, "empty axes")
    assert not plt.fignum_exists(figure.number)


@pytest.mark.parametrize("alt", ["", " \n", None])
def test_a_figure_without_words_is_refused(alt):
    import matplotlib.figure

    with pytest.raises(ValueError, match="alt must say in words"):
        display.show_figure(matplotlib.figure.Figure(), alt)


def test_something_else_than_a_figure_is_refused():
    with pytest.raises(TypeError, match=r"expected a matplotlib Figure, got list"):
        display.show_figure([], "axes")


def declarations(style):
    for node in tinycss2.parse_declaration_list(style, skip_whitespace=True):
        assert node.type == "declaration", (style, node)
        yield node.lower_name, node.value


def luminance(red, green, blue):
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (red / 255, green / 255, blue / 255)
    ]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((luminance(*one), luminance(*other)))
    return (high + 0.05) / (low + 0.05)


def test_text_takes_the_colour_of_the_theme():
    for data, _ in everything_with("calm"):
        for element in parsed(data).iter():
            for name, value in declarations(element.get("style", "")):
                if name == "color" and element.tag != "span":
                    assert tinycss2.serialize(value) == "inherit"
    assert "color:inherit" in TABLE  # JupyterLab has a colour and a size of its own for tables


@pytest.mark.parametrize("theme", [(255, 255, 255), (17, 17, 17), (31, 31, 31)])
def test_colours_stand_out_in_light_and_dark(theme):
    from course_utils.display import _bars, _note

    text = (33, 33, 33) if theme[0] > 128 else (222, 222, 222)
    for tone in _note._TONES.values():
        edge = [int(part) for part in tone.split(",")]
        tint = [0.1 * e + 0.9 * t for e, t in zip(edge, theme, strict=True)]
        assert contrast(text, tint) > 7
        assert contrast(edge, theme) > 2.5  # the edge only repeats what the word says
    for colour in (_bars._COLOUR, _bars._BEST_COLOUR):
        assert contrast(bytes.fromhex(colour[1:]), theme) > 3


def test_nothing_is_fetched_and_nothing_runs():
    for data, _ in everything_with("calm"):
        for word in ("<script", "<style", "<link", "http", "url(", "javascript:"):
            assert word not in data["text/html"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "cp437"])
def test_any_terminal_can_print_it(encoding):
    data, _ = shown(display.show_table, ["日本", "é"], [["x", None], ["a\nb", 1]], title="✓")
    text = _publish._encodable(data["text/plain"], encoding)
    text.encode(encoding)
    lines = text.split("\n")
    assert len({len(line) for line in lines[1:]}) == 1


PLAIN = """
import sys
import course_utils.display as display, course_utils.checkpoints as checkpoints
for module in ("jax", "IPython", "matplotlib", "numpy"):
    assert module not in sys.modules, module
display.show_table(["split", "images"], [["train", 60000]], title="Data")
display.show_bars({"a": 1, "b": 2}, "Speed", unit="ms")
display.show_note("careful", "warn")
checkpoints.record("speed", 1.5, "ms")
checkpoints.record_environment("2 devices", devices=2)
checkpoints.checkpoint("yes", True)
for module in ("jax", "IPython", "matplotlib", "numpy"):
    assert module not in sys.modules, module
checkpoints.checkpoint("no", False, "look here")
"""


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_plain_script_prints_the_text_without_starting_jax(encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    finished = subprocess.run(
        [sys.executable, "-c", PLAIN], capture_output=True, env=environment, timeout=60
    )
    output = finished.stdout.decode(encoding)
    assert finished.returncode == 1
    assert "train  60,000" in output
    assert "speed: 1.5 ms\n2 devices\n" in output
    assert ("✓ passed: yes" if encoding == "utf-8" else "+ passed: yes") in output
    assert b"CheckpointFailed: no: look here" in finished.stderr
