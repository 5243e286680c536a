#!/usr/bin/env python3
"""The page of `lrnn explain` in a real browser: it draws, steps and asks nobody for anything."""
import os, re, shutil, subprocess, sys, tempfile

browser = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)
if browser is None:
    print("skipped: there is no Chromium here")
    sys.exit(77)

with tempfile.TemporaryDirectory() as folder:
    page = os.path.join(folder, "page.html")
    subprocess.run([os.environ["LRNN"], "explain", "--regex", "(ab|ba)*", "--alphabet", "ab", "-o", page],
                   check=True, stdout=subprocess.DEVNULL)
    text = open(page, encoding="utf-8").read()
    outside = re.findall(r'(?:src|href)\s*=\s*"[^#"]*"|@import|url\((?!#)[^)]*\)', text)
    assert not outside, f"the page refers to something outside: {outside}"
    profile = os.path.join(folder, "profile")
    dom = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
                          "--virtual-time-budget=2000", "--dump-dom", "file://" + page],
                         check=True, capture_output=True, text=True, timeout=300).stdout
    assert 'class="state here"' in dom, "no state is marked: the script did not run"
    assert "after 12 letters" in dom, "the word was not stepped through"
    assert dom.count('class="state') >= 4, "the automaton is not drawn"
    assert "eigenvalues" in dom and "<tbody" in dom
print("ok")
