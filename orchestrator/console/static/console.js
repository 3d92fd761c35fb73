// What pages do by themselves beyond htmx: copy commands, and say when what they show may be old.
// Without this file, every page can be read and every form can be sent.
"use strict";

function showCopyButtons(root) {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll("button.copy[hidden]")) button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});

function mayBeOld(reason) {
  const banner = document.getElementById("old");
  if (!banner) return;
  if (reason) document.getElementById("old-reason").textContent = reason;
  banner.hidden = !reason;
}

document.addEventListener("htmx:after:request", (event) => {
  const { status, headers } = event.detail.ctx.response;
  if (status === 401) mayBeOld("The session has ended: load the page again.");
  else if (status >= 400) mayBeOld(`${headers.get("berth-away") || "There was no answer"}. It is asked again by itself.`);
  else mayBeOld(null);
});
// Nobody sees a page in the background, so it asks for nothing until it is seen again, and then at once.
document.addEventListener("htmx:before:request", (event) => {
  if (document.hidden && event.detail.ctx.sourceElement.id === "live") event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  const live = document.getElementById("live");
  if (live && !document.hidden) live.dispatchEvent(new Event("every"));
});
// The console itself has ended, or the machine sleeps.
document.addEventListener("htmx:error", () => mayBeOld("The console does not answer: is berth console still running in its terminal?"));
document.addEventListener("htmx:after:swap", () => showCopyButtons(document));
showCopyButtons(document);

// A table that can be scrolled sideways is a single thing to the browser's own scroll anchoring, so rows that come in
// above would move what a person looks at. At the top of the page, what comes in is meant to be seen.
let seen = null;
document.addEventListener("htmx:before:swap", () => {
  seen = null;
  if (window.scrollY === 0) return;
  for (const row of document.querySelectorAll("#live tr[id]")) {
    const top = row.getBoundingClientRect().top;
    if (top >= 0) {
      seen = { id: row.id, top };
      return;
    }
  }
});
document.addEventListener("htmx:after:swap", () => {
  const row = seen && document.getElementById(seen.id);
  if (row) window.scrollBy(0, row.getBoundingClientRect().top - seen.top);
});

// Browsers can keep a page in memory for the Back button, and a secret must not come back with it.
window.addEventListener("pagehide", () => {
  for (const each of document.querySelectorAll("[data-once]")) each.remove();
});
