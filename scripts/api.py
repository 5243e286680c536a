#!/usr/bin/env python3
"""Writes docs/api.md from the headers of src/ops: what each op computes, its structs and functions, and how
Python calls it.

  scripts/api.py            write it
  scripts/api.py --check    exit code 1 if it is out of date
"""
import re
import textwrap
from pathlib import Path

from one_page import tidy, write_or_check

ROOT = Path(__file__).resolve().parent.parent
OPS = ROOT / "src/ops"
PAGE = ROOT / "docs/api.md"
GROUPS = [
    ("Recurrences", "What carries a state from token to token.",
     ["delta_product", "selective_scan", "gated_linear_attention", "rwkv7", "mlstm", "slstm", "titans", "ttt", "short_conv"]),
    ("Rows", "What happens between the matrix products, a row at a time.", ["norm", "swiglu", "linears"]),
    ("Fewer launches", "Pieces of a layer as one pass or one node of the graph.", None),  # all others
]
NOT_PUBLIC = {"cuda", "diagonal"}  # what stands behind the ops
HEAD = """# C++ and Python API of the ops

<!-- Written by scripts/api.py from the headers of src/ops; a test compares. -->

Everything is in `namespace lrnn::ops` and in `liblrnn.so`; `find_package(lrnn)` finds it after `make install`, and
[examples/cpp](../examples/cpp/CMakeLists.txt) shows how. In Python the same ops are `lrnn.NAME`, and
`torch.ops.lrnn.NAME` after `import lrnn` ([Python](python.md)).

* Shapes: B sequences, T tokens, N steps a token, H heads (G of keys), K key and V value channels. `[B,T,H,D]` throughout.
* Any length from 1 on, any sizes; float32, float64, bfloat16, or float16 through float32. The state is float32 for inputs
  of 16 bits.
* The state goes in and comes out: a decoding step is a call with T = 1.
* An input that does not fit is an `lrnn::Error` of one sentence that names it.
* [Derivatives](numerics.md#derivatives) says which there are.
"""


def comment_and_code(text):
    """A header as the comment above its namespace and what is declared inside."""
    before, _, inside = text.partition("namespace lrnn::ops {\n")
    inside = inside.partition("\n}  // namespace lrnn::ops\n")[0].strip("\n")  # what follows is for back ends
    comment = [line[2:].removeprefix(" ") for line in before.splitlines() if line.startswith("//")]
    return comment, without_fields(inside)


def without_fields(code):
    """Lists of fields are how a struct is read, not what it is."""
    at = code.find("template <class Self, class Visit>")
    while at >= 0:
        begin, depth = code.index("{", at), 0
        for i in range(begin, len(code)):
            depth += (code[i] == "{") - (code[i] == "}")
            if depth == 0:
                break
        code = code[:at].rstrip(" ") + code[i + 1:].lstrip("\n")
        at = code.find("template <class Self, class Visit>")
    return code


def prose(comment):
    """Lines that are set in are formulas."""
    out = []
    for line in comment:
        out.append("    " + line[2:] if line.startswith("  ") else line)
    return "\n".join(out).strip("\n")


def schemas():
    """What is registered with torch, by name."""
    found = {}
    for file in sorted(OPS.rglob("*.cpp")):
        for call in re.findall(r'm\.def\(\s*((?:"(?:\\.|[^"\\])*"\s*)+)', file.read_text()):
            text = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', call)).replace('\\"', '"')
            found[text.split("(")[0]] = text
    return found


def header_of(folder):
    for name in (folder.name + ".h", "op.h"):
        if (folder / name).exists():
            return folder / name
    return None


def title_of(name, code):
    names = re.findall(r"^(?:[\w:<>,&* ]+[ >&*])(\w+)\(", code, re.M)
    public = [n for n in dict.fromkeys(names) if not n.endswith("_definition")]
    return name if name in public or not public else ", ".join(public)


def section(folder, known):
    header = header_of(folder)
    comment, code = comment_and_code(header.read_text())
    out = [f"### {title_of(folder.name, code)}", ""]
    if comment:
        out += [prose(comment), ""]
    out += [f"`#include \"{header.relative_to(ROOT / 'src')}\"`", "", "```cpp", code, "```", ""]
    python = [known[n] for n in dict.fromkeys([folder.name, *re.findall(r"\b(\w+)\(", code)]) if n in known]
    if python:
        out += ["As torch knows it:", "", "```", *[textwrap.fill(p, 100, subsequent_indent="    ") for p in python], "```", ""]
    return out


def written():
    known = schemas()
    folders = {f.name: f for f in sorted(OPS.iterdir()) if f.is_dir() and f.name not in NOT_PUBLIC and header_of(f)}
    named = {name for _, _, names in GROUPS if names for name in names}
    out = [HEAD]
    for title, about, names in GROUPS:
        out += [f"## {title}", "", about, ""]
        for name in names or [n for n in folders if n not in named]:
            if name in folders:
                out += section(folders[name], known)
    return tidy(out)


if __name__ == "__main__":
    write_or_check(PAGE, written())
