"""Lets the site of mkdocs.yml reach what lies beside docs/: CONTRIBUTING.md and CHANGELOG.md become pages, configs
and examples files, and links that leave docs/ lead to these copies. On disk the links stay as they are, so that
they work where the repository is read."""
import os
import re

from mkdocs.structure.files import File

PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
COPIED = ["configs", "examples"]
ELSEWHERE = {"README.md": "index.md", "results/README.md": "results.md"}
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)]*)?\))")


def on_files(files, config):
    root = os.path.dirname(config.config_file_path)
    for name, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=os.path.join(root, name)))
    for folder in COPIED:
        for here, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                path = os.path.join(here, name)
                files.append(File.generated(config, os.path.relpath(path, root), abs_src_path=path))
    return files


def on_page_markdown(markdown, page, config, files):
    source = page.file.src_uri
    # Where the page lies in the repository, and where it lies in the site.
    beside = "" if source in PAGES.values() else os.path.dirname("docs/" + source)
    here = os.path.dirname(source)

    def moved(match):
        target = os.path.normpath(os.path.join(beside, match[2]))
        target = PAGES.get(target) or ELSEWHERE.get(target) or target.removeprefix("docs/")
        return match[1] + os.path.relpath(target, here or ".") + match[3]

    def rewritten(part):
        if part.startswith("```"):
            return part
        if part.startswith("`"):  # in a table a bar is written \| everywhere; here code shows it as it is
            return part.replace("\\|", "|")
        return LINK.sub(moved, part)

    return "".join(map(rewritten, re.split(r"(^```.*?^```|`[^`\n]+`)", markdown, flags=re.S | re.M)))
