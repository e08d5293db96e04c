"""Each check of a page finds its fault in a page that has it, and nothing in a page without faults."""

import unittest
from types import SimpleNamespace

from playwright.sync_api import sync_playwright

import browser
import console
import page_checks

GOOD = """<!DOCTYPE html><html lang="en"><head><title>Good</title>
<style>:focus-visible { outline: 3px solid blue }</style></head>
<body><main><h1>Good</h1><a href="#one">One</a> <button>Two</button>
<button>Three</button></main></body></html>"""


class Checks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        playwright = sync_playwright().start()
        cls.addClassCleanup(playwright.stop)
        cls.chromium = browser.start(playwright)
        cls.addClassCleanup(cls.chromium.close)

    def page(self, *changes, has_script=True):
        """Returns the good page with each text replaced by another one."""
        page, text = self.chromium.new_page(java_script_enabled=has_script), GOOD
        for before, after in changes:
            self.assertIn(before, text)
            text = text.replace(before, after)
        page.set_content(text)
        self.addCleanup(page.close)
        return page

    def test_good_page_has_no_faults(self):
        page = self.page()

        self.assertEqual(page_checks.axe(page) + page_checks.phone(page) + page_checks.keyboard(page), [])
        self.assertEqual(page_checks.without_script(page, self.page(has_script=False)), [])

    def test_axe_finds_an_image_without_a_text_and_a_weak_contrast(self):
        page = self.page(("Two", '<img src="data:,">'), ('href="#one"', 'href="#one" style="color: #ddd"'))

        found = " ".join(page_checks.axe(page))

        self.assertIn("color-contrast", found)
        self.assertIn("button-name", found)

    def test_word_that_does_not_wrap_is_wider_than_a_phone(self):
        [fault] = page_checks.phone(self.page(("<h1>Good", f"<h1>{'w' * 200}")))

        self.assertIn("wider than 360 px", fault)

    def test_keyboard_does_not_reach_a_control_or_shows_no_focus(self):
        for change, wanted in (
            (("<button>Two", '<button tabindex="-1">Two'), "does not reach <button"),
            (("outline: 3px solid blue", "outline: none"), "focus cannot be seen on <a"),
            (("<button>Two", '<button tabindex="1">Two'), "not that of the page"),
        ):
            self.assertIn(wanted, " ".join(page_checks.keyboard(self.page(change))), change)

    def test_part_that_a_script_makes_is_missing_without_it(self):
        change = ("</main>", "</main><script>document.write('<h2>Late</h2>')</script>")

        faults = page_checks.without_script(self.page(change), self.page(change, has_script=False))

        self.assertEqual(faults, ["script: without it, the page lacks ['Late']"])

    def test_page_of_more_than_50_kb_is_too_large(self):
        self.assertEqual((len(page_checks.size(b"x" * 50_001)), page_checks.size(b"x" * 50_000)), (1, []))

    def test_requests_to_others_and_reports_of_the_policy_are_kept(self):
        one = browser.Browser(self.chromium, "http://console.localhost")
        self.addCleanup(one.context.close)
        headers = {"content-type": "text/html", "content-security-policy": "default-src 'self'"}
        one.context.route("http://**", lambda route: route.fulfill(body="<img src='http://a.test/b'>", headers=headers))

        one.open("/")

        self.assertEqual(one.foreign, ["/ asks for http://a.test/b"])
        self.assertIn("img-src http://a.test/b", " ".join(page_checks.policy(one)))


class Figures(unittest.TestCase):
    def test_faults_are_counted_and_named(self):
        checked = {"a": [], "b": ["dark: axe: color-contrast (serious): x: <p>", "size: 60,000 bytes"]}
        one = SimpleNamespace(requests=10, foreign=["/a asks for http://b.test"])
        walk = SimpleNamespace(checked=checked, browsers={"olga": one})

        counted = {one["name"]: (one["value"], one["attempted"], one["passed"]) for one in console.figures(walk)}

        self.assertEqual(
            counted,
            {"console.pages": (2, 2, 1), "console.axe": (1, 4, 3), "console.foreign_requests": (1, 10, 9)},
        )
        self.assertEqual(len(console.faults_of(walk)), 3)


if __name__ == "__main__":
    unittest.main()
