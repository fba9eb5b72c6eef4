"""What the README shows is what its programs print."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def steady(text):
    """Return the lines without what differs between machines: times, steps, and what is rounding.

    The order of a sum depends on the width of the processor's vectors, and with its last digit the
    pairs that SMO chooses.
    """
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("time ")]
    lines = [re.sub(r"after \d+ steps", "after some steps", line) for line in lines]
    return [re.sub(r"\d\.\de-1\d|0\.0e+00", "0", line) for line in lines]


def test_first_programs_print_what_the_readme_shows():
    spec = importlib.util.spec_from_file_location("outputs", ROOT / "tools" / "readme_outputs.py")
    outputs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(outputs)
    blocks = outputs.blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    assert [name.split()[0] for name in blocks] == ["program", "fit", "fit"]
    assert any("--model svr" in name for name in blocks)
    for shown, true in blocks.values():
        assert len(steady(true)) >= 2
        assert steady(shown) == steady(true)
