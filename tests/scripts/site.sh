#!/usr/bin/env bash
# The documentation builds as a site in which every link and anchor leads somewhere. Run from the repository root.
. tests/scripts/lib/as_user.sh

export NO_MKDOCS_2_WARNING=1  # of the theme, about its successor
mkdocs=.venv/docs/bin/mkdocs
if [ ! -x $mkdocs ] || ! cmp -s docs/requirements.txt .venv/docs/installed; then
  echo "skipped: mkdocs is not in .venv/docs (scripts/setup.sh docs installs it, and needs a network)"
  exit 77
fi
# Not --quiet: then warnings are not counted, and --strict fails for none.
expect 0 "" $mkdocs build --strict --site-dir "$work/site"
for page in index tutorial kernels performance results reference api python_api glossary contributing changelog commands/train log/index; do
  [ -s "$work/site/$page.html" ] || fail "the site has no page $page.html"
done
grep -rhoE '(src|href)="https?://[^"]*' "$work/site" --include=index.html | grep -v 'href="http' && fail "a page loads something from elsewhere"

# It would be noticed: a link to a page and to a heading that are not there.
mkdir "$work/copy" && cp -r docs scripts configs examples mkdocs.yml CONTRIBUTING.md CHANGELOG.md "$work/copy"
echo '[nowhere](nowhere.md), [no heading](glossary.md#nothing)' >>"$work/copy/docs/tutorial.md"
expect 1 "nowhere.md" $mkdocs build --strict --config-file "$work/copy/mkdocs.yml" --site-dir "$work/site2"
grep -qF "glossary.md#nothing" "$work/err" || fail "a link to a heading that is not there was not noticed: $(cat "$work/err")"

[ $failures = 0 ] && echo "site: all is well"
