// The strip: a click goes to the step under the pointer; a drag, the wheel and the links beside it zoom it to some of its
// steps, which the server draws; the cursor follows the step that is shown. Steps are counted from 1.
// The strip may be replaced with its page's settings, so it is looked up each time.
// "strip:zoomed" (detail: first and last, or null for all steps) says what it shows now; "figure:zoomed" asks for it.
const DRAG = 5; // pixels, below which a press is a click
const NOTCH = 80; // of a wheel: what a mouse sends for one, about
const SMALLEST = 10; // steps

const strip = () => document.querySelector("[data-strip]");
const shown = () => ({ first: Number(strip().dataset.first), last: Number(strip().dataset.last) });

function stepAt(clientX, box = strip().getBoundingClientRect()) {
  const { first, last } = shown();
  const share = (clientX - box.left) / box.width;
  return Math.min(last, Math.max(first, first + Math.floor(share * (last - first + 1))));
}

// ---- zoom: one question at a time; of those asked meanwhile the last
let wanted;
let busy = false;

async function zoom(value, { quiet = false } = {}) {
  wanted = value;
  if (busy) return;
  busy = true;
  try {
    while (wanted !== undefined) {
      const asked = wanted;
      wanted = undefined;
      if ((await show(asked)) && !quiet) announceZoom(asked);
    }
  } finally {
    busy = false;
  }
}

// Whether the server drew these steps; where it did not, htmx-errors.js says why, and the address stays.
async function show(value) {
  const row = strip().closest("[data-strip-row]");
  const asked = new URL(row.dataset.stripUrl, location.href);
  asked.search = zoomed(value).search;
  const { at } = strip().dataset;
  if (at) asked.searchParams.set("at", at);
  else asked.searchParams.delete("at");
  await htmx.ajax("GET", asked.pathname + asked.search, { target: row, swap: "outerHTML show:none" }).catch(() => {});
  const isDrawn = !row.isConnected;
  if (isDrawn) history.replaceState(history.state, "", zoomed(value));
  return isDrawn;
}

function zoomed(value) {
  const url = new URL(location.href);
  if (value) url.searchParams.set("zoom", value);
  else url.searchParams.delete("zoom");
  return url;
}

function announceZoom(value) {
  const { first, last } = shown();
  const words = value ? `steps ${first.toLocaleString("en")} to ${last.toLocaleString("en")}` : "all steps";
  document.getElementById("announce").textContent = words;
  document.dispatchEvent(new CustomEvent("strip:zoomed", { detail: value ? { first, last } : null }));
}

// The steps as an address names them; none for all of them.
function named(first, last) {
  const count = Number(strip().dataset.count);
  const size = Math.min(count, Math.max(SMALLEST, last - first + 1));
  const start = Math.min(Math.max(1, first), count - size + 1);
  return size === count ? "" : `${start}-${start + size - 1}`;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-zoom]");
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  if (link.href) zoom(new URL(link.href).searchParams.get("zoom") ?? "");
});

document.addEventListener("figure:zoomed", ({ detail }) => {
  if (strip()?.closest("[data-strip-row]")) zoom(detail ? named(detail.first, detail.last) : "", { quiet: true });
});

let turned = 0;
document.addEventListener(
  "wheel",
  (event) => {
    if (event.ctrlKey || !event.target.closest?.("[data-strip-row] [data-strip]")) return;
    event.preventDefault();
    turned += event.deltaY || event.deltaX;
    if (Math.abs(turned) < NOTCH || busy) return;
    const { first, last } = shown();
    const size = last - first + 1;
    const step = stepAt(event.clientX);
    const aside = event.shiftKey || !event.deltaY;
    if (!aside && turned < 0 && size <= SMALLEST) return;
    const more = aside ? size : turned < 0 ? size / 2 : size * 2;
    const start = aside ? first + Math.sign(turned) * Math.ceil(size / 4) : Math.round(step - ((step - first) * more) / size);
    turned = 0;
    zoom(named(start, start + Math.round(more) - 1));
  },
  { passive: false },
);

// ---- a drag over the strip chooses the steps to show
let drag = null;

document.addEventListener("pointerdown", (event) => {
  const pressed = event.target.closest?.("[data-strip-row] [data-strip]");
  if (pressed && event.button === 0 && event.pointerType !== "touch") drag = { from: event.clientX, box: null };
});

document.addEventListener("pointermove", (event) => {
  if (!drag || (!drag.box && Math.abs(event.clientX - drag.from) < DRAG)) return;
  if (!drag.box) {
    drag.box = document.createElement("i");
    drag.box.className = "strip-drag";
    strip().append(drag.box);
  }
  const { left } = strip().getBoundingClientRect();
  const [low, high] = [drag.from, event.clientX].sort((a, b) => a - b);
  drag.box.style.left = `${low - left}px`;
  drag.box.style.width = `${high - low}px`;
});

document.addEventListener("pointerup", (event) => {
  const { from, box } = drag ?? {};
  drag = null;
  if (!box) return;
  box.remove();
  const [first, last] = [stepAt(from), stepAt(event.clientX)].sort((a, b) => a - b);
  document.addEventListener("click", swallow, { capture: true, once: true });
  setTimeout(() => document.removeEventListener("click", swallow, { capture: true }));
  zoom(named(first, last));
});

// The click that ends a drag goes nowhere.
function swallow(event) {
  event.preventDefault();
  event.stopPropagation();
}

// ---- a click goes to a step
document.addEventListener("click", (event) => {
  const clicked = event.target.closest("[data-strip]");
  const count = Number(clicked?.dataset.count ?? 0);
  if (!count || event.ctrlKey || event.metaKey || event.detail === 0) return;
  event.preventDefault();
  const step = stepAt(event.clientX, clicked.getBoundingClientRect());
  const chosen = new CustomEvent("step:choose", { bubbles: true, cancelable: true, detail: { step } });
  if (!clicked.dispatchEvent(chosen)) return;
  const url = new URL(clicked.dataset.url, location.href);
  url.searchParams.set("at", step);
  location.assign(url);
});

document.addEventListener("step:shown", ({ detail: { step } }) => {
  const cursor = strip()?.querySelector("[data-cursor]");
  if (!cursor) return;
  const { first, last } = shown();
  const size = last - first + 1;
  strip().dataset.at = step;
  cursor.hidden = step < first || step > last;
  cursor.style.left = `${(100 * (step - first + 0.5)) / size}%`;
  if (cursor.hidden) zoom(named(step - Math.floor(size / 2), step - Math.floor(size / 2) + size - 1));
});
