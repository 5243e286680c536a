"""What scripts that write one page of docs share: api.py, python_api.py."""
import re
import sys
from pathlib import Path


def tidy(lines):
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def write_or_check(page, text):
    """Writes the page where it differs; with --check says so and ends with 1."""
    if page.exists() and page.read_text() == text:
        return
    script, name = Path(sys.argv[0]).name, f"docs/{page.name}"
    if "--check" in sys.argv:
        sys.exit(f"{script}: {name} is out of date; run scripts/{script}")
    page.write_text(text)
    print("wrote", name)
