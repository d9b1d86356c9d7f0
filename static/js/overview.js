// The overview: an answer to changed settings never replaces a field, so that what is being typed stays; it only
// brings up to date what is said beside the fields, and which of them the chosen policy uses. That comes as data
// (inspector/pages/overview/beside_fields.py) where the answer is for the fields that the page has.
const SHAPE = "Form-Shape";
const settings = () => document.getElementById("settings");
const query = (form = settings()) => new URLSearchParams(new FormData(form)).toString();

document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (detail.target.id === "chart" && settings()) detail.headers[SHAPE] = settings().dataset.shape;
});

function setAttribute(element, name, value) {
  const text = value === true ? "" : value || null;
  if (element.getAttribute(name) === text) return;
  if (text === null) element.removeAttribute(name);
  else element.setAttribute(name, text);
}

function refresh(beside) {
  let unsent = false;
  for (const element of document.querySelectorAll("[data-fresh]")) {
    const { text, value, ...attributes } = beside[element.dataset.fresh] ?? {}; // none of a preset that was deleted since
    if (element.type === "hidden") element.value = value ?? element.value;
    unsent ||= element.disabled && attributes.disabled === false && element.value !== value;
    for (const [name, given] of Object.entries(attributes)) setAttribute(element, name, given);
    if (text !== undefined && element.textContent !== text) element.textContent = text;
  }
  if (unsent) htmx.trigger(settings(), "submit"); // a field that was off keeps its value, and is used again
}

// htmx goes through all elements that it removes, which takes longer than to show the new ones: those of the results hold
// nothing that would have to be ended. Not around the focus, which htmx gives back.
document.addEventListener("htmx:oobBeforeSwap", ({ detail: { target } }) => {
  if (target.id === "results" && !target.contains(document.activeElement)) target.replaceChildren();
});

const typed = new Map(); // what was typed for settings that another policy does not have: it comes back with them

function restore(focused, answered) {
  document.getElementById(focused)?.focus({ preventScroll: true });
  const empty = [...settings().querySelectorAll("input")].filter((field) => !field.value && typed.get(field.name));
  for (const field of empty) field.value = typed.get(field.name);
  if (query() !== answered) htmx.trigger(settings(), "submit"); // also what was changed before the form was wired
}

// Another policy has other settings: then the whole form is new, and the focus goes back to where it was.
document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
  if (detail.target.id !== "what-if") return;
  const data = detail.fragment.querySelector("[data-beside]");
  const beside = data && JSON.parse(data.textContent);
  const policy = beside?.policy.value ?? detail.fragment.querySelector("[name=policy]").value;
  const isCurrent = policy === settings().querySelector("[name=policy]").value; // else the answer to another change is to come
  detail.shouldSwap = isCurrent && !beside;
  if (isCurrent && beside) refresh(beside);
  if (!detail.shouldSwap) return;
  const focused = document.activeElement?.id;
  for (const field of settings().querySelectorAll("input")) typed.set(field.name, field.value);
  const answered = query(detail.fragment.querySelector("#settings"));
  document.addEventListener("htmx:afterSettle", () => restore(focused, answered), { once: true }); // it is wired by then
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

// What found no server is asked for again once one answers, which growth.js finds out.
const AWAY = [0, 502, 503, 504]; // statuses of a request without an answer, and of a proxy whose server is away
let isUnanswered = false;

document.addEventListener("htmx:afterRequest", (event) => {
  const isOfForm = event.target === settings();
  const failed = isOfForm && !event.detail.successful;
  if (failed || event.detail.target.id === "overview") asked = null;
  if (isOfForm) isUnanswered = failed && AWAY.includes(event.detail.xhr.status);
});

document.addEventListener("server:answers", () => {
  if (isUnanswered) htmx.trigger(settings(), "submit");
  isUnanswered = false;
});

// A table that was closed leaves the focus where it was opened.
document.addEventListener("htmx:afterSettle", ({ target }) => {
  if (target.id === "table" && target === document.activeElement) document.getElementById("open-table")?.focus();
});
