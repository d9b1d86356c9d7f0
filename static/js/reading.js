// Reading a message: opens a part in place and folds it again, copies it as it is recorded, and has the server count the tokens
// of what is selected.
const WAIT = 400; // milliseconds after the last change of a selection
const folded = new WeakMap(); // copies of what a part held before it was opened

document.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
  if (target.matches(".part") && !target.querySelector("[data-reader]")) {
    folded.set(target, [...target.childNodes].map((node) => node.cloneNode(true)));
  }
});

document.addEventListener("click", ({ target }) => {
  const part = target.closest("[data-fold]")?.closest(".part");
  if (!part) return;
  part.replaceChildren(...folded.get(part));
  htmx.process(part);
  part.querySelector("[data-key=r]").focus();
});

document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-copy]");
  if (!link || !navigator.clipboard || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const answer = await fetch(link.href, { credentials: "same-origin" }).catch(() => null);
  const done = answer?.ok && (await navigator.clipboard.writeText(await answer.text()).then(() => true, () => false));
  document.getElementById("announce").textContent = done ? "Copied" : "Not copied";
  link.textContent = done ? "Copied" : "Not copied";
});

function selected() {
  const selection = getSelection();
  const node = selection.anchorNode;
  const place = (node instanceof Element ? node : node?.parentElement)?.closest(".message, .part");
  return place ? selection.toString() : "";
}

function show(words) {
  let box = document.getElementById("selection");
  if (!box) {
    box = document.createElement("p");
    box.id = "selection";
    box.className = "selection small no-print";
    box.setAttribute("role", "status");
    document.getElementById("main").append(box);
  }
  box.hidden = !words;
  box.textContent = words;
}

let timer;
let asked = 0;
document.addEventListener("selectionchange", () => {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const text = selected();
    const place = document.querySelector("[data-count-selection]");
    asked += 1;
    if (!text.trim() || !place) {
      if (document.getElementById("selection")) show("");
      return;
    }
    const mine = asked;
    const body = new URLSearchParams({ text });
    const headers = JSON.parse(document.body.getAttribute("hx-headers"));
    const answer = await fetch(place.dataset.countSelection, { method: "POST", body, headers }).catch(() => null);
    if (mine === asked) show(answer?.ok ? await answer.text() : "The selection was not counted");
  }, WAIT);
});
