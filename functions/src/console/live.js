// Shows changes of a workflow or of a log while its page is visible. Without this script, the page has a link for that.
(() => {
  "use strict";
  const part = document.querySelector("[data-live]");
  if (!part) return;
  let since = part.dataset.since;
  let timer = null;
  let ended = false;

  const plan = () => {
    if (!ended && !document.hidden && timer === null) timer = setTimeout(poll, 4000);
  };

  const poll = async () => {
    try {
      const path = part.dataset.live + "?since=" + encodeURIComponent(since);
      const answer = await fetch(path, { credentials: "same-origin", redirect: "error" });
      if (answer.ok) {
        const now = await answer.json();
        since = now.since;
        ended = now.ended;
        if (now.text) part.append(now.text);
        if (now.html) part.innerHTML = now.html;
      } else {
        ended = answer.status < 500;
      }
    } catch {
      // The next poll may succeed.
    }
    timer = null;
    plan();
  };

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    timer = null;
    plan();
  });
  plan();
})();
