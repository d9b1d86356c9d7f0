// Keeps the focus in its place when a part of the page is replaced: on the element of the same name in the new part, else on
// the new part itself. htmx does so for elements with an id; without this the others leave the focus to the page, where a
// screen reader begins at the top again.
const FOCUSABLE = "a[href], button:enabled, input:enabled, select:enabled, textarea:enabled, summary, [tabindex]";
let last = null; // what had the focus last
let around = []; // it and what it lies in, looked at while it is in the page

const nameOf = (element) => (element.ariaLabel || element.title || element.textContent).replace(/\s+/g, " ").trim();
const lettersOf = (element) => nameOf(element).replace(/[^\p{L}]/gu, ""); // neither its numbers nor the arrow of a column

document.addEventListener("focusin", (event) => {
  last = event.target;
  around = event.composedPath();
});

function counterpart(part) {
  const alike = [part, ...part.querySelectorAll(last.tagName)].filter((element) => element.tagName === last.tagName);
  const same = (read) => read(last) && alike.find((element) => read(element) === read(last));
  const match = same(nameOf) || (!last.matches("[data-read]") && same(lettersOf)); // other rows are of other messages
  if (!match || match.matches(FOCUSABLE)) return match;
  return match.parentElement.querySelector(FOCUSABLE); // of a pair of links the one that leads somewhere
}

document.addEventListener("htmx:afterSwap", ({ target: part, detail }) => {
  const isLost = last && !last.isConnected && document.activeElement === document.body;
  const isReplaced = around.some((element) => element === detail.target || (part.id && element.id === part.id));
  if (!isLost || !isReplaced) return;
  const next = counterpart(part) || part;
  if (!next.matches(FOCUSABLE)) next.tabIndex = -1;
  next.focus({ preventScroll: true });
});
