#!/usr/bin/env python3
"""Writes docs/python_api.md from the docstrings of python/lrnn: every public name with its arguments.

  scripts/python_api.py            write it
  scripts/python_api.py --check    exit code 1 if it is out of date

The modules are read, not imported: torch need not be there.
"""
import ast
import inspect
import re
import sys
from pathlib import Path

from one_page import tidy, write_or_check

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python/lrnn"
PAGE = ROOT / "docs/python_api.md"
HEAD = """# Python API

<!-- Written by scripts/python_api.py from the docstrings of python/lrnn; a test compares. -->

Everything that `import lrnn` gives. [Python](python.md) is where to begin; every example here is run by a test.
"""
# Of `lrnn` itself: by the module that has them.
GROUPS = {"ops": "Functions", "nn": "Layers", "runs": "Runs", "model": "Models", "error": "Errors", "fla": "fla's names"}


def tree_of(module):
    path = PACKAGE.joinpath(*module.split("."))
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())


def public(module):
    """name -> where it is defined, as a package's __all__ and imports say. What is a module itself is left out."""
    tree, home, names = tree_of(module) if module else ast.parse((PACKAGE / "__init__.py").read_text()), {}, []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            home.update({alias.asname or alias.name: node.module for alias in node.names})
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            names = ast.literal_eval(node.value)
    return {name: ".".join(filter(None, (module, home[name]))) for name in names if name in home}


def definition(name, module):
    for node in tree_of(module).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return node
    sys.exit(f"python_api.py: {name} is not in {module}")


def arguments(node, method):
    """One a line where they are many."""
    args = node.args
    if method:
        args.args = args.args[1:]  # self
    parts = [ast.unparse(a) for a in args.posonlyargs + args.args]
    first = len(parts) - len(args.defaults)
    parts = [p if i < first else f"{p} = {ast.unparse(args.defaults[i - first])}" for i, p in enumerate(parts)]
    if args.kwonlyargs:
        parts.append("*" if not args.vararg else f"*{ast.unparse(args.vararg)}")
        parts += [ast.unparse(a) + (f" = {ast.unparse(d)}" if d else "") for a, d in zip(args.kwonlyargs, args.kw_defaults)]
    if args.kwarg:
        parts.append(f"**{ast.unparse(args.kwarg)}")
    return parts


def signature(prefix, node, result, method=False):
    parts, end = arguments(node, method), f") -> {ast.unparse(result)}" if result is not None else ")"
    line = f"{prefix}({', '.join(parts)}{end}"
    if len(line) > 110:
        line = prefix + "(\n" + "".join(f"    {part},\n" for part in parts) + end
    return ["```python", line, "```", ""]


def code(lines, language=""):
    return ["```" + language, *inspect.cleandoc("\n".join(lines)).split("\n"), "```", ""]


def listed(lines):
    """`name: what it is`, and lines that go on, as a list."""
    out = []
    for line in inspect.cleandoc("\n".join(lines)).split("\n"):
        if line.startswith(" "):
            out[-1] += " " + line.strip()
        else:
            name, colon, about = line.partition(": ")
            out.append(f"* `{name}`: {about}" if colon else f"* {line}")
    return out + [""]


def markdown(text):
    """A docstring: paragraphs, formulas after `::`, lists after `Args:` and others, examples."""
    lines, out, i = inspect.cleandoc(text).split("\n"), [], 0

    def block(begins):
        nonlocal i
        start = i
        while i < len(lines) and begins(lines[i]):
            i += 1
        return lines[start:i]

    set_in = lambda line: not line or line.startswith(" ")
    while i < len(lines):
        line = lines[i]
        if line.startswith(">>>"):
            out += code(block(lambda x: x.strip()), "pycon")
        elif re.fullmatch(r"(Args|Returns|Attributes):", line):
            i += 1
            out += [f"**{line[:-1]}**", "", *listed(block(set_in))]
        elif line.endswith("::"):
            i += 1
            out += [line[:-1], "", *code(block(set_in))]
        else:
            out.append(line.replace("``", "`"))
            i += 1
    return out + [""]


def section(name, module, prefix):
    node = definition(name, module)
    out = [f"### {prefix}{name}", ""]
    if isinstance(node, ast.FunctionDef):
        return out + signature(prefix + name, node, node.returns) + markdown(ast.get_docstring(node) or "")
    methods = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
    if "__init__" in methods:
        out += signature(prefix + name, methods["__init__"], None, True)
    out += markdown(ast.get_docstring(node) or "")
    for method in methods.values():
        if not method.name.startswith("_") and ast.get_docstring(method):
            out += signature("." + method.name, method, method.returns, True) + markdown(ast.get_docstring(method))
    return out


def group(title, module, names, prefix):
    about = ast.get_docstring(tree_of(module)) or ""
    out = [f"## {title}", "", *markdown(about)]
    for name, home in names.items():
        out += section(name, home, prefix)
    return out


def written():
    top, out = public(""), [HEAD]
    for module, title in GROUPS.items():
        package = (PACKAGE / module).is_dir()
        names = public(module) if package else {n: m for n, m in top.items() if m == module}
        out += group(title, module, names, f"lrnn.{module}." if package else "lrnn.")
    return tidy(out)


if __name__ == "__main__":
    write_or_check(PAGE, written())
