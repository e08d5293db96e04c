"""The walk through the console: what each person does in a browser, and every page that is checked on the way."""

import re

import page_checks
import tenant
from browser import Browser
from programs import TENANT, VENDOR, Failed
from tenant import INVITED, OWNER, PRODUCTION, RELEASE, STAGING, STRANGER

DEVELOPER, DATA, CUSTOMER = INVITED
SCHEMES = ("light", "dark")


class Walk:
    """The browsers of all people, and what is wrong with the pages that they saw."""

    def __init__(self, chromium, programs, made, folder):
        self.chromium, self.programs, self.made, self.folder = chromium, programs, made, folder
        self.browsers, self.codes = {}, {OWNER: made.code}
        self.plain = None
        # How many workflows ended while a page showed them.
        self.watched = 0
        # By page: what is wrong with it, in words.
        self.checked = {}

    def run(self):
        step = self.programs.step
        step("a stranger signs in, and sees their account alone")
        self.meet_a_stranger()
        step("the owner accepts an invitation, and invites the others")
        owner = self.enter(OWNER)
        self.invite(owner)
        step("the owner approves a plan, and watches the deploy")
        self.approve(owner)
        step("the owner deploys the latest version and goes back to a release, and watches both")
        deploy = self.deploy(owner)
        step("a deploy fails; the owner retries its job and resumes it")
        failed, job = self.fail(owner)
        step("every page as the owner sees it")
        self.see_all(owner, [deploy, failed], job)
        step("what a developer, a data scientist and a customer's user may do")
        self.be_developer()
        self.be_data_scientist()
        self.be_customer()
        step("the owner changes and removes a member, and signs out")
        self.change_members(owner)
        self.leave(owner)
        expect(self.watched, "no page of a workflow showed a change by itself")

    def show_where(self):
        """Writes what each browser shows, for somebody who looks for the reason of a failure."""
        for person, browser in self.browsers.items():
            name = f"at-the-end-{person.partition('@')[0].replace(' ', '-')}"
            browser.page.screenshot(path=self.folder / f"{name}.png", full_page=True)

    # ---- people

    def enter(self, person):
        """Signs a person in, who accepts their invitation."""
        browser = Browser(self.chromium, self.made.console)
        self.browsers[person] = browser
        browser.sign_in(self.made.issuer, person)
        expect(browser.path() == "/account", f"{person}, who is not a member yet, sees {browser.path()}")
        browser.send("Accept", {"code": self.codes[person]})
        expect("Installs" in browser.links(), f"{person} is not a member: {browser.main()}")
        return browser

    def meet_a_stranger(self):
        browser = Browser(self.chromium, self.made.console)
        self.browsers[STRANGER] = browser
        browser.open("/installs/globex")
        self.check(browser, "sign-in")
        browser.sign_in(self.made.issuer, STRANGER)
        for path in ("/installs", "/policies", f"/installs/{STAGING}"):
            browser.open(path)
            expect(browser.path() == "/account", f"a stranger sees {browser.path()} at {path}")
        expect(browser.links() == [], f"a stranger has links to {browser.links()}")
        self.check(browser, "account-of-a-stranger")
        browser.send("Accept", {"code": "0" * 64})
        self.check(browser, "refused-invitation", has_address=False)
        browser.open("/account")
        expect("Installs" not in browser.links(), "a code that nobody got makes a member")

    def invite(self, owner):
        for person, (group, installs) in INVITED.items():
            owner.open("/members")
            owner.send("Invite", {"member": person, "groups": group, "installs": installs})
            [self.codes[person]] = re.findall(r"\b[0-9a-f]{64}\b", owner.main())
        self.check(owner, "invitation", has_address=False)

    # ---- workflows

    def approve(self, owner):
        """Approves the plan that waits, in a browser without scripts, and watches the end of the workflow with them."""
        workflow, waiting = self.made.workflows[PRODUCTION], []

        def has_plan():
            shown = self.programs.freehold_json("install", "show", PRODUCTION)
            waiting[:] = [plan["job"] for plan in shown.get("approvals", [])]
            return waiting

        self.programs.wait_until("a plan waits for an approval", has_plan)
        owner.open(f"/installs/{PRODUCTION}")
        self.check(owner, "install-with-a-plan")
        self.check_at(owner, f"/jobs/{waiting[0]}", "job-with-a-plan")
        self.check_at(owner, f"/workflows/{workflow}", "workflow-that-waits")
        plain = self.without_script(owner)
        plain.open(f"/jobs/{waiting[0]}")
        plain.send("Approve")
        expect(OWNER in plain.main(), f"after the approval: {plain.page.url}: {plain.main()}")
        # Its schedule would call it within a minute.
        self.programs.client("lambda", VENDOR).invoke(FunctionName=f"fh-{TENANT}--sweep", Payload=b"{}")
        self.watch(owner, "succeeded")

    def deploy(self, owner):
        owner.open(f"/installs/{STAGING}")
        owner.page.locator("summary", has_text="Deploy a release…").click()
        self.check(owner, "install-with-an-open-form")
        owner.open(f"/installs/{STAGING}")
        owner.send("Deploy", confirmed=True)
        self.watch(owner, "succeeded")
        expect(self.made.versions[1] in owner.main(), f"the latest version is not deployed: {owner.main()}")
        # Back to the version before.
        owner.open(f"/installs/{STAGING}")
        owner.send("Deploy a release", confirmed=True)
        expect(owner.heading().startswith("Workflow "), f"after the deploy: {owner.main()}")
        expect(RELEASE in owner.main(), f"the workflow does not name release {RELEASE}: {owner.main()}")
        self.watch(owner, "succeeded")
        return owner.path()

    def fail(self, owner):
        """Returns the paths of a workflow that failed, and of its job. An action of the app refuses the greeting."""
        words = ("deploy", STAGING, "--input", "greeting=unfriendly", "--all", "--no-wait")
        path = f"/workflows/{self.programs.freehold_json(*words)['workflow']}"
        owner.open(path)
        self.watch(owner, "failed")
        job = self.failed_job(owner)
        self.check_at(owner, job, "job-that-failed")
        owner.send("Retry")
        expect(owner.path() == path, f"after the retry: {owner.page.url}: {owner.main()}")
        self.watch(owner, "failed", again=1)
        owner.send("Resume", {"reason": "once more"})
        self.watch(owner, "failed", again=2)
        expect("once more" in owner.main(), f"the workflow does not show why it was resumed: {owner.main()}")
        return path, self.failed_job(owner)

    @staticmethod
    def failed_job(browser):
        row = browser.page.locator("tr", has=browser.page.locator(".badge", has_text=re.compile("^failed$")))
        return row.locator("a[href^='/jobs/']").first.get_attribute("href")

    def watch(self, browser, state, again=0):
        """Waits until the page of a workflow shows its end, which it does by itself, and opens it again then."""
        shown = browser.page.locator("[data-live] dl .badge").first
        before, opened = shown.inner_text(), browser.opened
        browser.page.locator("[data-live] dl .badge", has_text=re.compile(f"^{state}$")).first.wait_for()
        expect(browser.opened == opened, "the page of a workflow was opened again instead of showing the change")
        self.watched += before != state
        browser.page.reload()
        rows = browser.page.locator("table", has=browser.page.locator("caption", has_text="Continuations"))
        expect(rows.locator("tbody tr").count() == again, f"the workflow was not continued {again} times")

    def see_all(self, owner, workflows, job):
        """Checks the pages that the walk does not come by, each at its address."""
        versions = self.made.versions
        pages = {
            "installs": "/installs",
            "install": f"/installs/{STAGING}",
            "install-inputs": f"/installs/{STAGING}/inputs",
            "install-drift": f"/installs/{STAGING}/drift",
            "install-history": f"/installs/{STAGING}/history",
            "install-workflows": f"/installs/{STAGING}/workflows",
            "workflow": workflows[0],
            "workflow-that-failed": workflows[1],
            "job-that-failed-again": job,
            "apps": "/apps",
            "app": f"/apps/{tenant.APP}",
            "version": f"/apps/{tenant.APP}/versions/{versions[1]}?before={versions[0]}",
            "members": "/members",
            "member": f"/members/{OWNER}",
            "policies": "/policies",
            "account": "/account",
            "no-such-page": "/nowhere",
        }
        for name, path in pages.items():
            self.check_at(owner, path, name)

    # ---- what each of the people may do

    def be_developer(self):
        browser = self.enter(DEVELOPER)
        self.expect_forms(browser, f"/installs/{STAGING}", ["Deploy", "Deploy a release"])
        self.check(browser, "install-of-a-developer")
        for path in (f"/installs/{PRODUCTION}", "/members", "/policies"):
            self.expect_forms(browser, path, [])
        # The page of an install in production has no form. If the form of another page goes there, the API refuses it.
        browser.open(f"/installs/{STAGING}")
        browser.aim("Deploy", f"/installs/{PRODUCTION}/deploy")
        browser.send("Deploy", confirmed=True)
        expect(browser.document.status == 403, f"a developer deploys to production: {browser.main()}")
        expect("deploy_components" in browser.main(), f"the refusal does not name the permission: {browser.main()}")
        self.check(browser, "refused-form", has_address=False)

    def be_data_scientist(self):
        browser = self.enter(DATA)
        expect(browser.links() == ["Installs", "Apps"], f"a data scientist has links to {browser.links()}")
        self.expect_forms(browser, f"/installs/{STAGING}", [])
        self.check(browser, "install-of-a-data-scientist")
        self.expect_forms(browser, f"/workflows/{self.made.workflows[STAGING]}", [])
        for path in (f"/installs/{STAGING}/inputs", f"/apps/{tenant.APP}", "/members", "/policies"):
            self.expect_refusal(browser, path)
        self.check(browser, "refused-page")

    def be_customer(self):
        browser = self.enter(CUSTOMER)
        browser.open("/installs")
        seen = browser.page.locator("tbody th").all_inner_texts()
        expect(seen == [STAGING], f"a customer's user sees the installs {seen}")
        self.check(browser, "installs-of-a-customer")
        self.expect_forms(browser, f"/installs/{STAGING}", [])
        production = self.made.workflows[PRODUCTION]
        for path in (f"/installs/{PRODUCTION}", f"/workflows/{production}", "/members", f"/apps/{tenant.APP}"):
            self.expect_refusal(browser, path)

    def change_members(self, owner):
        owner.open(f"/members/{DEVELOPER}")
        owner.send("Change", {"groups": "auditor"})
        self.expect_forms(self.browsers[DEVELOPER], f"/installs/{STAGING}", [])
        owner.send("Remove", confirmed=True)
        expect(DEVELOPER not in owner.main(), f"the removed member is still there: {owner.main()}")
        removed = self.browsers[DEVELOPER]
        removed.open("/installs")
        expect(removed.path() == "/account", f"a removed member sees {removed.path()}")

    def leave(self, owner):
        owner.open("/policies")
        owner.send("Replace", confirmed=True)
        expect(owner.heading() == "Policies", f"after the same policies were set: {owner.main()}")
        second = Browser(self.chromium, self.made.console)
        self.browsers["the owner's second browser"] = second
        second.sign_in(self.made.issuer, OWNER)
        owner.sign_out()
        self.check(owner, "signed-out")
        owner.open("/installs")
        expect(owner.path() == "/sign-in", f"after the sign-out, the browser still sees {owner.path()}")
        second.open("/account")
        expect(second.heading() == "Account", "the sign-out of one browser ended the session of another one")
        second.send("Sign out everywhere", confirmed=True)
        expect(second.path() == "/sign-in", f"after the sign-out everywhere: {second.path()}")

    # ---- checks

    def expect_forms(self, browser, path, forms):
        browser.open(path)
        found = [text for text in browser.buttons() if text not in ("Accept", "Sign out everywhere")]
        expect(found == forms, f"{path} has the forms {found} instead of {forms}")

    @staticmethod
    def expect_refusal(browser, path):
        status = browser.open(path).status
        expect(status in (403, 404), f"{path} is shown: {status}")

    def check_at(self, browser, path, name):
        browser.open(path)
        self.check(browser, name)

    def check(self, browser, name, has_address=True):
        """Checks the page that a browser shows, and makes its pictures. A page after a form has no address."""
        page, wrong = browser.page, []
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            wrong += [f"{scheme}: {fault}" for fault in page_checks.axe(page)]
            page.screenshot(path=self.folder / f"{name}-{scheme}.png", full_page=True)
        wrong += page_checks.size(browser.document.body())
        wrong += page_checks.phone(page) + page_checks.keyboard(page)
        if has_address:
            plain = self.without_script(browser)
            plain.page.goto(page.url)
            wrong += page_checks.without_script(page, plain.page)
        wrong += page_checks.policy(browser)
        self.checked[name] = wrong

    def without_script(self, browser):
        """Returns a browser that runs no script, with the session of another one."""
        plain = self.plain
        if plain is None:
            plain = self.plain = self.browsers["without a script"] = Browser(self.chromium, self.made.console, False)
        plain.context.clear_cookies()
        plain.context.add_cookies(browser.context.cookies())
        return plain


def expect(is_so, otherwise):
    if not is_so:
        raise Failed(otherwise)
