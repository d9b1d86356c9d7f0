// Single-key shortcuts. An element takes part by data-key="j ArrowDown"; a key clicks the one that
// has the focus, else the first visible one.
const SWITCH = "shortcuts-off";
const dialog = document.getElementById("shortcuts");

function isOff() {
  try { return localStorage.getItem(SWITCH) === "1"; } catch { return false; }
}

function isTyping(target) {
  return target.closest?.("input:not([type=checkbox]):not([type=radio]), select, textarea, [contenteditable]") != null;
}

function owners(key) {
  return [...document.querySelectorAll("[data-key]")].filter(
    (element) => element.dataset.key.split(" ").includes(key) && !element.closest("[hidden], details:not([open]) > :not(summary)"),
  );
}

// n and N: the next and the previous match of a search.
function toHit(back) {
  const hits = [...document.querySelectorAll("[data-hit]")];
  if (!hits.length) return false;
  const at = hits.indexOf(document.activeElement);
  hits[(back ? (at > 0 ? at : hits.length) - 1 : at + 1) % hits.length].focus();
  return true;
}

// j and k, on a row also the arrows: the next and the previous row of a table that is read; past its end, its next page.
const READ = { j: false, k: true, ArrowDown: false, ArrowUp: true };

function toRow(back) {
  const rows = [...document.querySelectorAll("[data-read]")];
  if (!rows.length) return false;
  const at = rows.indexOf(document.activeElement);
  const row = at < 0 ? rows.at(back ? -1 : 0) : rows[at + (back ? -1 : 1)];
  if (row) row.focus();
  else document.querySelector(back ? "[data-read-earlier]" : "[data-read-later]")?.click();
  return true;
}

function press(key) {
  const reads = key in READ && (key.length === 1 || document.activeElement.matches("[data-read]"));
  if (reads && toRow(READ[key])) return true;
  if ((key === "n" || key === "N") && toHit(key === "N")) return true;
  const all = owners(key);
  const element = all.find((owner) => owner === document.activeElement) ?? all[0];
  if (!element) return false;
  if (element.matches("input, select, textarea")) {
    element.focus();
    element.select?.();
  } else if (element.getAttribute("aria-disabled") !== "true") {
    element.click();
  }
  return true;
}

function scrolls(event) {
  // Arrow, Home and End keys belong to the pane or plot that has the focus, if it can use them.
  return /^(Arrow|Home|End)/.test(event.key) && event.target.closest?.("[data-own-keys], dialog, summary, [role=tab]");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.key === "Escape" && isTyping(event.target)) {
    event.target.blur();
    return;
  }
  if (isTyping(event.target) || document.querySelector("dialog[open]") || isOff() || scrolls(event)) return;
  if (event.key === "?") dialog.showModal();
  else if (!press(event.key)) return;
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-help]")) dialog.showModal();
});

const box = dialog.querySelector("[data-shortcuts-switch]");
box.checked = !isOff();
box.addEventListener("change", () => {
  try { localStorage.setItem(SWITCH, box.checked ? "0" : "1"); } catch { /* private windows may refuse storage */ }
});
