"""A browser of one person: its pages, and all that happened in them that a check asks about later."""

import re
import shutil
from urllib.parse import urlsplit

from programs import Failed
from tenant import PASSWORD

# How long a page may take on a busy machine, in milliseconds.
LONGEST = 60_000
# Reports of the content security policy, beside the messages that the browser prints.
REPORTS = """
window.cspReports = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.cspReports.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


def start(playwright):
    """Starts the machine's own Chromium. Its sandbox asks for a user that is not root, and the pages are our own."""
    return playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])


class Browser:
    """A person's browser, with cookies of its own. Every request and every message of its pages is kept."""

    def __init__(self, chromium, console, has_script=True):
        self.console = console
        self.has_script = has_script
        self.context = chromium.new_context(java_script_enabled=has_script)
        self.context.set_default_timeout(LONGEST)
        self.context.add_init_script(REPORTS)
        self.page = self.context.new_page()
        # Origins that requests may go to beside the console: the issuer's, while somebody signs in.
        self.permitted = {console}
        self.requests, self.foreign, self.messages = 0, [], []
        # The response that is shown, and how many there were.
        self.document, self.opened = None, 0
        self.page.on("response", self._note_document)
        self.page.on("request", self._note_request)
        self.page.on("console", lambda message: self._note_message(message.type, message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))

    def _note_request(self, request):
        self.requests += 1
        address = urlsplit(request.url)
        origin = f"{address.scheme}://{address.netloc}"
        if address.scheme not in ("data", "about") and origin not in self.permitted:
            self.foreign.append(f"{urlsplit(self.page.url).path} asks for {request.url}")

    def _note_document(self, response):
        if response.request.is_navigation_request() and not 300 <= response.status < 400:
            self.document, self.opened = response, self.opened + 1

    def _note_message(self, kind, text):
        # The browser prints each answer that is an error; the walk knows which ones it asks for.
        if kind in ("error", "warning") and not text.startswith("Failed to load resource"):
            self.messages.append(text)

    def open(self, path):
        """Opens a page of the console and returns its response."""
        return self.page.goto(self.console + path, wait_until="load")

    def path(self):
        return urlsplit(self.page.url).path

    def heading(self):
        return self.page.locator("h1").inner_text()

    def main(self):
        return self.page.locator("main").inner_text()

    def buttons(self):
        """Returns the texts of the forms' buttons in the content, also of those behind a disclosure."""
        return [text.strip() for text in self.page.locator("main form button").all_text_contents()]

    def links(self):
        """Returns the texts of the site's navigation."""
        return self.page.locator("header nav a").all_text_contents()

    def sign_in(self, issuer, person):
        """Signs in on the issuer's page, beginning at the page where the console's first page leads to."""
        self.open("/")
        if self.path() != "/sign-in":
            raise Failed(f"without a session, the console shows {self.page.url} instead of the sign-in page")
        self.permitted.add(issuer)
        self.page.get_by_role("link", name="Sign in").click()
        self.page.locator("input[name=username]").fill(person)
        self.page.locator("input[name=password]").fill(PASSWORD)
        with self.page.expect_navigation(url=re.compile(re.escape(self.console))):
            self.page.locator("input[name=password]").press("Enter")
        self.permitted.discard(issuer)
        if self.page.locator("header.site form").count() != 1:
            raise Failed(f"`{person}` is not signed in: {self.page.url}: {self.main()}")

    def send(self, button, fields=None, confirmed=False):
        """Sends the form with a button, and waits for the page after it."""
        # A closed disclosure hides its form from roles.
        if confirmed:
            self.page.locator("summary", has_text=re.compile(f"^{re.escape(button)}…$")).click()
        form = self.page.locator("main form", has=self.page.get_by_role("button", name=button, exact=True))
        for name, value in (fields or {}).items():
            form.locator(f"[name={name}]").fill(value)
        if confirmed:
            form.locator("[name=confirmed]").check()
        with self.page.expect_navigation():
            form.get_by_role("button", name=button, exact=True).click()

    def aim(self, button, path):
        """Lets the form with a button go to another path of the console."""
        form = f"main form:has(button:text-is('{button}'))"
        self.page.eval_on_selector(form, "(form, path) => form.setAttribute('action', path)", path)

    def sign_out(self):
        with self.page.expect_navigation():
            self.page.locator("header.site form button").click()
