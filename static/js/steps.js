// The stepper: keeps the step list, the strip and the swapped panes in step with each other. Steps are counted from 1.
const panes = document.querySelector("[data-stepper]");
const pane = document.querySelector("[data-list-pane]");
const ROW = 28;
const AHEAD = 12;
let loading = false;

const list = () => document.getElementById("steps");
const row = (step) => list()?.querySelector(`[data-step="${CSS.escape(String(step))}"]`);

function stepUrl(step) {
  const url = new URL(panes.dataset.stepsUrl, location.href);
  url.searchParams.set("at", step);
  return url.pathname + url.search;
}

// Whether a step that is asked for is shown then; where it is not, htmx-errors.js says why. `key`: the one that asks for it.
async function ask(step, key = "") {
  const how = { source: panes, target: "#step", swap: "outerHTML show:none" };
  const answer = htmx.ajax("GET", stepUrl(step), how);
  lastKey = key;
  await answer.catch(() => {});
  return Number(document.getElementById("step").dataset.at) === step;
}

// The rows from one on, or those around a step, of the steps that the filter leaves.
async function load(from, around) {
  if (loading) return;
  loading = true;
  const { url } = list().dataset;
  const target = new URL(url, location.href);
  if (around) target.searchParams.set("around", around);
  else target.searchParams.set("from", Math.max(1, from));
  target.searchParams.set("at", document.getElementById("step").dataset.at);
  try {
    await htmx.ajax("GET", target.pathname + target.search, { target: "#steps", swap: "outerHTML" }).catch(() => {});
  } finally {
    loading = false;
  }
}

// Rows that come into view but are not loaded are asked for, so that a list of any length scrolls.
function scrolled() {
  const { from, to, count } = list().dataset;
  const first = Math.floor(pane.scrollTop / ROW) + 1;
  const last = Math.ceil((pane.scrollTop + pane.clientHeight) / ROW);
  const missing = first < Number(from) || (last > Number(to) && Number(to) < Number(count));
  if (missing) load(first - AHEAD);
}

// What of the list is in sight. Looked at before a step is swapped: right behind it the whole page would be laid out for it.
let sight = null;

function look() {
  sight = { top: pane.scrollTop, height: pane.clientHeight };
}

// Before a step is swapped. htmx goes through all elements that it removes, which takes longer than to show the new ones:
// those of the messages hold nothing that would have to be ended.
function prepare() {
  look();
  document.getElementById("messages").remove();
}

// A row that is out of sight, or at the edge of it, comes to the middle.
function reveal(number) {
  const top = (number - 1) * ROW;
  const below = sight.top + sight.height - 2 * ROW;
  if (top < sight.top + ROW || top > below) pane.scrollTop = Math.max(0, top - sight.height / 2);
}

// Of a filtered list: may a step that has no row be in the part that is not loaded.
function isBeyond(step) {
  const { from, to, count } = list().dataset;
  const rows = list().querySelectorAll("[data-step]");
  const [first, last] = [rows[0], rows[rows.length - 1]].map((shown) => Number(shown.dataset.step));
  return (step < first && Number(from) > 1) || (step > last && Number(to) < Number(count));
}

async function show(step, { focus } = {}) {
  for (const old of list().querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
  const isFiltered = list().dataset.filter !== "";
  if (!isFiltered) reveal(step);
  if (!row(step) && (!isFiltered || isBeyond(step))) {
    await load(step - AHEAD * 2, isFiltered ? step : 0);
    look();
  }
  const shown = row(step);
  shown?.setAttribute("aria-current", "step");
  if (isFiltered) { // the row of the step, else the one behind it
    const rows = [...list().querySelectorAll("[data-step]")];
    const place = rows.findIndex((known) => Number(known.dataset.step) >= step);
    reveal(Number(list().dataset.from) + (place < 0 ? rows.length - 1 : place));
  }
  if (focus) shown?.focus({ preventScroll: true });
}

// A followed session comes to its next step several times a second, which growth.js says now and then.
let isFollowed = false;

document.addEventListener("session:grows", () => {
  if (!pane) return;
  prepare();
  isFollowed = true;
});

function say() {
  const { at, count } = document.getElementById("step").dataset;
  if (!playing && !isFollowed) document.getElementById("announce").textContent = `step ${at} of ${count}`;
  return Number(at);
}

// An address of a step that is not there becomes that of the step that is shown.
function correctAddress() {
  const { at } = document.getElementById("step").dataset;
  const url = new URL(location.href);
  if (!url.searchParams.has("at") || url.searchParams.get("at") === at) return;
  url.searchParams.set("at", at);
  history.replaceState(history.state, "", url);
}

// Links to other pages that take the step along.
function takeAlong(step) {
  for (const link of document.querySelectorAll("a[data-at-step]")) {
    const url = new URL(link.href);
    url.searchParams.set("at", step);
    link.href = url.href;
  }
}

// ---- keys that are pressed while a step is on its way: they count from that step, once it is shown. The link that such a key
// clicks is gone by then, and its answer would be lost.
const MOVES = { // by key, the step behind one; several of these keys are one request
  j: (at, count) => Math.min(count, at + 1),
  k: (at) => Math.max(1, at - 1),
  Home: () => 1,
  End: (at, count) => count,
};
let onItsWay = false;
let waiting = []; // keys, in their order

const isStep = (event) => event.detail.target?.id === "step";

document.addEventListener("htmx:beforeRequest", (event) => {
  if (isStep(event)) onItsWay = true;
});

document.addEventListener("htmx:afterRequest", (event) => {
  if (!isStep(event)) return;
  if (!event.detail.successful) waiting = [];
  arrived();
});

function arrived() {
  onItsWay = false;
  const { dataset } = document.getElementById("step");
  const at = Number(dataset.at);
  let step = at;
  let moved = 0;
  for (; waiting[moved] in MOVES; moved += 1) step = MOVES[waiting[moved]](step, Number(dataset.count));
  const keys = waiting.splice(0, moved);
  if (moved > 1 && step !== at) goTo(step, keys.at(-1));
  else press(moved === 1 ? keys[0] : waiting.shift());
}

// Pressed as if it had not waited; where it leads nowhere, the next one is.
function press(key) {
  const link = key && linkOf(key);
  if (link) link.click();
  else if (key && waiting.length) arrived();
}

// A step that no link leads to, as the end of several keys or from the strip.
async function goTo(step, key) {
  if (await ask(step, key)) history.pushState({ htmx: true }, "", stepUrl(step));
}

const linkOf = (key) => document.querySelector(`#step [data-key~="${CSS.escape(key)}"][href]`);

// ---- the same key again: what it would ask for is fetched while a step is looked at, and shown in place of an answer
const FRESH = 10_000; // milliseconds; later it is asked for anew, because comments or calls may have come
let lastKey = "";
let fetched = null; // the address of a step, its fragment, and until when that is shown

function fetchAhead() {
  const path = lastKey && linkOf(lastKey)?.getAttribute("href");
  fetched = path ? { path, html: fragment(path), until: performance.now() + FRESH } : null;
}

// null where the server has more to say than the step: an error, a replay that is under way, a login.
async function fragment(path) {
  try {
    const answer = await fetch(path, { headers: { "HX-Request": "true", "HX-Target": "step" } });
    const isPlain = answer.status === 200 && !answer.redirected && !answer.headers.has("HX-Reswap") && !answer.headers.has("HX-Refresh");
    return isPlain ? await answer.text() : null;
  } catch {
    return null;
  }
}

document.addEventListener("htmx:confirm", (event) => {
  if (!isStep(event)) return;
  const { path, elt, issueRequest } = event.detail;
  const key = elt.dataset.key?.split(" ")[0] ?? "";
  if (onItsWay && key) {
    waiting.push(key);
    event.preventDefault();
    return;
  }
  lastKey = key;
  if (onItsWay || elt === panes || fetched?.path !== path || fetched.until < performance.now()) return;
  event.preventDefault();
  onItsWay = true;
  showAhead(fetched, () => {
    onItsWay = false;
    issueRequest();
  });
});

async function showAhead({ path, html }, ask) {
  const known = await html;
  if (known === null) return ask();
  const target = document.getElementById("step");
  prepare();
  htmx.swap(target, known, { swapStyle: "outerHTML", swapDelay: 0, settleDelay: 0 }, { eventInfo: { target } });
  history.pushState({ htmx: true }, "", path);
  arrived();
}

// ---- playing: the next step, a moment after the one before is shown, until the last one or any other click or key
const PACE = 700; // milliseconds
let playing = 0;

function play(on) {
  clearTimeout(playing);
  playing = on ? setTimeout(playOn, PACE) : 0;
  const button = document.getElementById("play");
  button.textContent = on ? "Stop" : "Play";
  if (!on) say();
}

async function playOn() {
  const step = Number(document.getElementById("step").dataset.at) + 1;
  if (step > Number(document.getElementById("step").dataset.count)) return play(false);
  const turn = playing;
  const isShown = await ask(step);
  if (isShown) history.replaceState(history.state, "", stepUrl(step));
  if (playing === turn) play(isShown);
}

if (pane) {
  let timer;
  correctAddress();
  takeAlong(Number(document.getElementById("step").dataset.at));
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-play]")) play(!playing);
    else if (playing) play(false);
  });
  pane.addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(scrolled, 60);
  });
  look();
  show(Number(document.getElementById("step").dataset.at));
  new ResizeObserver(() => { // a page that becomes wide, as of a tablet that is turned, shows the list for the first time
    const wasHidden = !sight.height;
    look();
    if (wasHidden && sight.height) show(Number(document.getElementById("step").dataset.at));
  }).observe(pane);

  document.addEventListener("htmx:beforeSwap", (event) => {
    if (isStep(event) && event.detail.shouldSwap) prepare();
  });

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id !== "step") return;
    const step = say();
    takeAlong(step);
    show(step, { focus: document.activeElement?.closest?.("#steps") != null });
    document.dispatchEvent(new CustomEvent("step:shown", { detail: { step } }));
    if (!isFollowed && !waiting.length) fetchAhead();
    isFollowed = false;
  });

  document.addEventListener("step:choose", (event) => {
    event.preventDefault();
    goTo(event.detail.step);
  });
}
