// Single-key shortcuts. An element takes part by data-key="j ArrowDown"; a key clicks the one that
// has the focus, else the first visible one. A person may use another key than the one named there: this browser
// remembers which, by the name of the default.
const SWITCH = "shortcuts-off";
const OWN = "shortcuts-own";
const WORDS = { " ": "Space" };
const dialog = document.getElementById("shortcuts");

function isOff() {
  try { return localStorage.getItem(SWITCH) === "1"; } catch { return false; }
}

function load() {
  try { return new Map(Object.entries(JSON.parse(localStorage.getItem(OWN) ?? "{}"))); } catch { return new Map(); }
}

let own = load();
const keyOf = (name) => own.get(name) ?? name;

// The shortcut of a pressed key; none where it was given away.
function defaultOf(pressed) {
  for (const [name, key] of own) if (key === pressed) return name;
  return own.has(pressed) ? null : pressed;
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

// Arrow, Home and End keys belong to the pane or plot that has the focus, if it can use them; Space to what it presses
// or scrolls.
function isTaken({ key, target }) {
  if (key === " ") return target.closest?.("[data-own-keys], button, summary, label, input");
  return /^(Arrow|Home|End)/.test(key) && target.closest?.("[data-own-keys], dialog, summary, [role=tab]");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.key === "Escape" && isTyping(event.target)) {
    event.target.blur();
    return;
  }
  if (isTyping(event.target) || document.querySelector("dialog[open]") || isOff() || isTaken(event)) return;
  const key = defaultOf(WORDS[event.key] ?? event.key);
  if (key && press(key)) event.preventDefault();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-help]")) open();
});

// ---- the list: which key is whose
const box = dialog.querySelector("[data-shortcuts-switch]");
const form = dialog.querySelector("[data-shortcuts-form]");
const keys = [...dialog.querySelectorAll("[data-action]")];

function open() {
  const options = keys.map(({ dataset }) => new Option(`${dataset.action} (${keyOf(dataset.default)})`, dataset.default));
  const { value } = form.elements.action;
  form.elements.action.replaceChildren(...options);
  if (value) form.elements.action.value = value;
  if (!dialog.open) dialog.showModal();
}

// The keys of the list, and those that titles have in brackets.
function label() {
  for (const key of document.querySelectorAll("kbd[data-default]")) key.textContent = keyOf(key.dataset.default);
  const ending = / \((\S+)\)$/;
  for (const element of document.querySelectorAll("[data-key][title]")) {
    const title = (element.dataset.title ??= element.title);
    const [, name] = title.match(ending) ?? [];
    if (!name) continue;
    element.title = title.replace(ending, ` (${keyOf(name)})`);
    const hidden = element.querySelector(".visually-hidden");
    if (hidden?.textContent.match(ending)) hidden.textContent = element.title;
  }
}

function keep() {
  try { localStorage.setItem(OWN, JSON.stringify(Object.fromEntries(own))); } catch { /* private windows may refuse storage */ }
  label();
  open();
}

function say(words) {
  dialog.querySelector("[data-shortcuts-words]").textContent = words;
}

box.checked = !isOff();
box.addEventListener("change", () => {
  try { localStorage.setItem(SWITCH, box.checked ? "0" : "1"); } catch { /* private windows may refuse storage */ }
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const action = (name) => keys.find(({ dataset }) => dataset.default === name)?.dataset.action;
  const name = form.elements.action.value;
  const key = WORDS[form.elements.key.value] ?? form.elements.key.value;
  const before = keyOf(name);
  const other = keys.map(({ dataset }) => dataset.default).find((known) => known !== name && keyOf(known) === key);
  own.set(name, key);
  if (other) own.set(other, before);
  own = new Map([...own].filter(([known, used]) => known !== used));
  form.elements.key.value = "";
  keep();
  say(`${key}: ${action(name)}${other ? `; ${before}: ${action(other)}` : ""}`);
});

dialog.querySelector("[data-shortcuts-reset]").addEventListener("click", () => {
  own = new Map();
  keep();
  say("All keys are the defaults");
});

if (own.size) label();
document.addEventListener("htmx:afterSettle", () => own.size && label());
