"""What has to be true of every page: axe-core finds nothing serious, it fits a phone, a keyboard reaches everything in
it, it is small, and it says the same without a script. Each check returns what is wrong, in words."""

import os
from pathlib import Path

BYTES = 50_000
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}
SERIOUS = ("serious", "critical")
# What a person can act on, when no closed disclosure hides it.
CONTROLS = """() => [...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
  .filter((one) => one.checkVisibility() && !one.disabled)
  .map((one, at) => { one.dataset.control = at; return one.outerHTML.slice(0, 120); })"""
FOCUSED = """() => {
  const one = document.activeElement, style = getComputedStyle(one);
  return { at: one.dataset.control, isVisible: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 };
}"""
# What a page says, without values that change from one moment to the next.
WORDS = """() => [...document.querySelectorAll("h1, h2, caption, th, dt, summary, label, button, nav a, figure title")]
  .map((one) => one.textContent.trim())"""
# The widest parts, of a page that is wider than the window.
WIDE = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const wide = [...document.body.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > width + 1);
  return [`${document.documentElement.scrollWidth} px`, ...wide.slice(0, 3).map((one) => one.outerHTML.slice(0, 120))];
}"""


def axe(page):
    """Returns what axe-core finds in a page as it is shown now."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(Path(os.environ["FREEHOLD_AXE"]).read_text())
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [
        f"axe: {one['id']} ({one['impact']}): {one['help']}: {one['nodes'][0]['html'][:160]}"
        for one in found
        if one["impact"] in SERIOUS
    ]


def size(body):
    return [f"size: {len(body):,} bytes, and {BYTES:,} are the most"] if len(body) > BYTES else []


def phone(page):
    """Returns what makes a page wider than a phone."""
    page.set_viewport_size(PHONE)
    wide = page.evaluate(WIDE)
    page.set_viewport_size(DESK)
    return [f"phone: wider than {PHONE['width']} px: {'; '.join(wide)}"] if wide else []


def keyboard(page):
    """Returns the controls that the tabulator key does not reach, and those whose focus cannot be seen."""
    controls = page.evaluate(CONTROLS)
    page.evaluate("() => { document.activeElement.blur(); window.getSelection().removeAllRanges(); }")
    reached, hidden = [], set()
    # Once more than there are controls, since the browser itself takes one step between the last and the first.
    for _ in range(len(controls) + 1):
        page.keyboard.press("Tab")
        now = page.evaluate(FOCUSED)
        if now["at"] is not None and int(now["at"]) not in reached:
            reached.append(int(now["at"]))
            if not now["isVisible"]:
                hidden.add(int(now["at"]))
    wrong = [f"keyboard: does not reach {controls[at]}" for at in sorted(set(range(len(controls))) - set(reached))]
    # It begins where somebody clicked last.
    first = reached.index(min(reached)) if reached else 0
    reached = reached[first:] + reached[:first]
    if not wrong and reached != sorted(reached):
        wrong.append(f"keyboard: goes in the order {reached}, which is not that of the page")
    return wrong + [f"keyboard: the focus cannot be seen on {controls[at]}" for at in sorted(hidden)]


def without_script(page, other):
    """Returns what a page lacks in a browser that runs no script."""
    with_it, without = page.evaluate(WORDS), other.evaluate(WORDS)
    lacking = [word for word in with_it if word not in without]
    return [f"script: without it, the page lacks {lacking[:5]}"] if lacking else []


def policy(browser):
    """Returns the reports of the content security policy, and other errors that the browser printed."""
    reports = browser.page.evaluate("() => window.cspReports") if browser.has_script else []
    wrong = [f"policy: {text}" for text in [*reports, *browser.messages]]
    browser.messages.clear()
    return wrong
