// The overview: an answer to changed settings never replaces a field, so that what is being typed stays; it only
// brings up to date what is said beside the fields, and which of them the chosen policy uses.
const ATTRIBUTES = ["aria-current", "aria-invalid", "class", "disabled", "hidden", "placeholder"];
const CONTROLS = "input, select";
const settings = () => document.getElementById("settings");
const query = (form = settings()) => new URLSearchParams(new FormData(form)).toString();

function copyAttributes(fresh, shown) {
  for (const name of ATTRIBUTES) {
    if (fresh.hasAttribute(name)) shown.setAttribute(name, fresh.getAttribute(name));
    else shown.removeAttribute(name);
  }
}

function refresh(fragment) {
  let unsent = false;
  for (const fresh of fragment.querySelectorAll("[data-fresh]")) {
    const shown = document.querySelector(`[data-fresh="${CSS.escape(fresh.dataset.fresh)}"]`);
    if (!shown) continue; // a preset that was saved since the page was loaded
    if (fresh.type === "hidden") shown.value = fresh.value;
    unsent ||= shown.disabled && !fresh.disabled && shown.value !== fresh.value;
    copyAttributes(fresh, shown);
    if (!fresh.matches(CONTROLS) && shown.textContent !== fresh.textContent) shown.textContent = fresh.textContent;
  }
  if (unsent) htmx.trigger(settings(), "submit"); // a field that was off keeps its value, and is used again
}

// The policy that a form was written for, and its fields: two policies may name theirs alike, with other choices.
function shape(form) {
  const written = form.querySelector("[name=policy] [selected]").value;
  return [written, ...Array.from(form.querySelectorAll(CONTROLS), (field) => field.name)].join();
}

const typed = new Map(); // what was typed for settings that another policy does not have: it comes back with them

function restore(focused, answered) {
  document.getElementById(focused)?.focus({ preventScroll: true });
  const empty = [...settings().querySelectorAll("input")].filter((field) => !field.value && typed.get(field.name));
  for (const field of empty) field.value = typed.get(field.name);
  if (query() !== answered) htmx.trigger(settings(), "submit"); // also what was changed before the form was wired
}

// Another policy has other settings: then the whole form is new, and the focus goes back to where it was.
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  if (event.detail.target.id !== "what-if") return;
  const policy = (form) => form.querySelector("[name=policy]").value;
  if (policy(event.detail.fragment) !== policy(settings())) {
    event.detail.shouldSwap = false; // the policy was changed again since, and its own answer is to come
    return;
  }
  if (shape(event.detail.fragment.querySelector("#settings")) !== shape(settings())) {
    const focused = document.activeElement?.id;
    for (const field of settings().querySelectorAll("input")) typed.set(field.name, field.value);
    const answered = query(event.detail.fragment.querySelector("#settings"));
    document.addEventListener("htmx:afterSettle", () => restore(focused, answered), { once: true }); // it is wired by then
    return;
  }
  event.detail.shouldSwap = false;
  refresh(event.detail.fragment);
});

// The same settings are not asked for twice: leaving a field by a click on a link would replace that link before the
// button is up, and the click would be lost.
let asked = settings() && query();

document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target !== settings()) return;
  if (query() === asked) event.preventDefault();
  asked = query();
});

// The chart comes first: its points are asked for, and drawn while the server makes the rest. What is changed meanwhile is
// asked for when all of that is there, the last change alone.
let isUnderWay = false;
let isChanged = false;

document.addEventListener("htmx:confirm", (event) => {
  if (event.target !== settings()) return;
  event.preventDefault();
  isChanged = isUnderWay;
  if (!isUnderWay && query() !== asked) chartFirst(event.detail.issueRequest);
});

async function chartFirst(askForRest) {
  isUnderWay = true;
  let drawn;
  do {
    drawn = query();
    const detail = { id: "timeline", search: drawn };
    document.dispatchEvent(new CustomEvent("figure:preview", { detail }));
    await detail.points;
  } while (settings() && query() !== drawn);
  isUnderWay = isChanged = false;
  askForRest(true);
}

document.addEventListener("htmx:beforeSend", (event) => {
  if (event.target !== settings()) return;
  isUnderWay = true;
  event.detail.xhr.addEventListener("loadend", () => {
    isUnderWay = false;
    if (isChanged) htmx.trigger(settings(), "submit");
  });
});

document.addEventListener("htmx:afterRequest", (event) => {
  const failed = event.target === settings() && !event.detail.successful;
  if (failed || event.detail.target.id === "overview") asked = null;
});

// A table that was closed leaves the focus where it was opened.
document.addEventListener("htmx:afterSettle", ({ target }) => {
  if (target.id === "table" && target === document.activeElement) document.getElementById("open-table")?.focus();
});
