#!/usr/bin/env python3
"""Does report.html work in a browser? browser_test.py SHARDPROOF ENGINE HOSTILE_PAGE

Debian's chromium, headless, reads the page from a file (apt-get install chromium, or ci/setup browser). Without one the test
is skipped, and says so. SHARDPROOF_CHROMIUM names another one.
"""
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SHARDPROOF, ENGINE, HOSTILE = sys.argv[1:4]
BROWSER = os.environ.get("SHARDPROOF_CHROMIUM") or shutil.which("chromium")


class Document(html.parser.HTMLParser):
    """What the browser made of a page: attributes of the root, tags, texts by id."""

    def __init__(self, text):
        super().__init__()
        self.root, self.tags, self.text, self.open = {}, [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "html":
            self.root = attributes
        self.tags.append((tag, attributes))
        if tag not in ("meta", "input", "br", "img", "link"):
            self.open.append(attributes.get("id"))

    def handle_endtag(self, tag):
        if self.open and tag not in ("meta", "input", "br", "img", "link"):
            self.open.pop()

    def handle_data(self, data):
        for place in filter(None, self.open):
            self.text[place] = self.text.get(place, "") + data

    def count(self, tag, **wanted):
        wanted = {key.rstrip("_"): value for key, value in wanted.items()}
        return sum(name == tag and all(value in (attributes.get(key) or "").split() for key, value in wanted.items())
                   for name, attributes in self.tags)


class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        run = subprocess.run([SHARDPROOF, "run", "--impl", "lib:" + os.path.abspath(ENGINE), "--profile", "smoke", "--report",
                              str(cls.folder / "run")], stdout=subprocess.DEVNULL, check=False)
        assert run.returncode == 1, run.returncode
        subprocess.run([HOSTILE, str(cls.folder / "hostile")], check=True)

    def start(self, *arguments):
        profile = tempfile.mkdtemp(dir=self.folder)
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
                   "--user-data-dir=" + profile, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HOME": profile}, check=True)

    def pages(self, page):
        """How many it has on paper, printed as soon as it is loaded."""
        paper = self.folder / "paper.pdf"
        self.start(f"--print-to-pdf={paper}", f"file://{page}")
        return len(re.findall(rb"/Type /Page\n", paper.read_bytes()))

    def browse(self, page, fragment=""):
        """The document after its script, and what the console says."""
        done = self.start("--virtual-time-budget=5000", "--dump-dom", f"file://{page}{fragment}")
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return Document(done.stdout), console

    def page(self, fragment=""):
        document, console = self.browse(self.folder / "run/report.html", fragment)
        self.assertEqual(console, [])
        self.assertEqual(document.root.get("data-ready"), "18")
        return document

    def test_it_shows_verdict_findings_and_their_drawing(self):
        document = self.page()
        self.assertIn("not conformant: 1 fail, 17 unsupported", document.text["verdict"])
        self.assertEqual(document.text["shown"], "18 of 18 cases")
        self.assertIn("nothing orders them", document.text["causes"])
        self.assertIn("shardproof replay", document.text["causes"])
        self.assertEqual(document.count("path", class_="unordered"), 1)
        self.assertEqual(document.count("rect", class_="finding"), 1)
        self.assertGreater(document.count("path", class_="meets"), 0)
        self.assertGreater(document.count("td"), 100)

    def test_what_failed_can_be_read_before_the_matrix_is_made(self):
        """The matrix is most of a long report, and the rest has a bound: so opening takes no longer the more was asked."""
        document = self.page()
        cells = document.count("span", class_="said")
        self.assertEqual(document.root.get("data-matrix"), "shown")
        self.assertGreater(cells, 50)
        self.assertLess(int(document.root["data-elements"]), len(document.tags) - 3 * cells)

    def test_the_matrix_is_on_paper_too(self):
        text = (self.folder / "run/report.html").read_text()
        late = self.folder / "late.html"  # which stays without most of it; and without the policy, which knows the script by its hash
        late.write_text(re.sub(r"<meta http-equiv[^>]*>", "", text).replace("'beforeprint'", "'never'")
                        .replace("setTimeout(goOn)", "null"))
        self.assertGreater(self.pages(self.folder / "run/report.html"), self.pages(late))

    def test_it_says_why_and_how_to_mend_it(self):
        causes = self.page().text["causes"]
        self.assertIn("how to mend it", causes)
        self.assertIn("shardproof shrink", causes)

    def test_nothing_is_told_by_the_pointer_alone(self):
        """What a title of the mouse says stands in the page too: cells of the matrix, operations of a drawing."""
        document = self.page()
        self.assertEqual(document.count("span", class_="cell"), document.count("span", class_="said") + 5)  # the legend
        self.assertIn("the drawing in words", document.text["causes"])
        self.assertRegex(document.text["causes"], r"event \d+: .*, where it shows; not ordered with event \d+ of rank \d")

    def test_the_keyboard_reaches_everything(self):
        for tag, attributes in self.page().tags:
            if attributes.get("class") == "scroll" or attributes.get("role") == "region":
                self.assertEqual(attributes.get("tabindex"), "0", attributes)
            if tag == "a":
                self.assertTrue(attributes.get("href"))
            self.assertFalse(tag in ("div", "span", "tr", "td") and "onclick" in attributes)
            self.assertFalse(attributes.get("tabindex", "0") not in ("0", "-1"), attributes)

    def test_the_fragment_filters(self):
        for fragment, shown in (("#filter=GE-05", 1), ("#filter=ge", 1), ("#filter=LW-01", 0), ("#status=unsupported", 17),
                                ("#group=ddp", 1), ("#q=axpby", 1), ("#q=no+such+text", 0), ("#status=fail&group=zero3", 0)):
            with self.subTest(fragment):
                self.assertEqual(self.page(fragment).text["shown"], f"{shown} of 18 cases")

    def test_light_and_dark(self):
        for theme in "light", "dark":
            self.assertEqual(self.page("#theme=" + theme).root["data-theme"], theme)

    def test_controls_have_names(self):
        document = self.page()
        for tag, attributes in document.tags:
            if tag == "svg" and attributes.get("aria-hidden") != "true":
                self.assertTrue(attributes.get("aria-label"))
        self.assertEqual(document.count("label"), 4)
        self.assertGreater(document.count("th", scope="row"), 0)

    def test_texts_of_others_stay_texts(self):
        document, console = self.browse(self.folder / "hostile/report.html")
        self.assertEqual(console, [])
        self.assertEqual(document.root.get("data-ready"), "1")
        self.assertNotIn("data-pwned", document.root)
        self.assertEqual(document.count("img"), 0)
        self.assertEqual(document.count("script"), 2)
        self.assertIn("<img src=x onerror=", document.text["causes"])
        self.assertEqual(document.count("svg", class_="memory"), 1)
        self.assertNotIn("event -1", document.text["causes"])
        self.assertIn("At most 2.0 KiB, after event 1 (", document.text["causes"])
        self.assertFalse([a for _, a in document.tags if any(key.startswith("on") for key in a)])

    def test_the_policy_stops_what_it_does_not_name(self):
        text = (self.folder / "run/report.html").read_text()
        added = self.folder / "added.html"
        added.write_text(text.replace("<noscript>", "<script>document.documentElement.dataset.pwned = 1</script>"
                                      "<img src=x onerror='document.documentElement.dataset.pwned = 2'><noscript>"))
        document, console = self.browse(added)
        self.assertNotIn("data-pwned", document.root)
        self.assertEqual(document.root.get("data-ready"), "18")
        self.assertTrue(any("Content Security Policy" in line for line in console), console)
        changed = self.folder / "changed.html"
        changed.write_text(re.sub(r"'use strict';", "'use  strict';", text))
        self.assertNotIn("data-ready", self.browse(changed)[0].root)


if __name__ == "__main__":
    if not BROWSER:
        print("skipped: no chromium here (ci/setup browser installs it; SHARDPROOF_CHROMIUM names one)")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1])
