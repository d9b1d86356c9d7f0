// After a form that loads a whole page the focus is at what became of it, not on the page as a whole, where a screen reader
// begins at the top again: at the first wrong field, else at what the address names, at an error, at a text that is shown only
// once, at what can be undone, or at the heading of the page.
const SENT = "form-sent"; // in this tab: a form has been posted
const PLACES = ["[autofocus]", '[aria-invalid="true"]', ":target", '[role="alert"]', "input[readonly]", ".undo button", "h1"];

function take() {
  try {
    const sent = sessionStorage.getItem(SENT);
    sessionStorage.removeItem(SENT);
    return sent;
  } catch { return null; }
}

function arrive() {
  const place = PLACES.map((selector) => document.querySelector(`main ${selector}`)).find(Boolean);
  if (!place || document.activeElement !== document.body) return;
  const isFocusable = place.tabIndex >= 0;
  if (!isFocusable) place.tabIndex = -1;
  place.focus({ preventScroll: !isFocusable });
}

if (take()) arrive();

addEventListener("submit", (event) => { // behind all that send the form in another way
  const method = event.submitter?.getAttribute("formmethod") ?? event.target.getAttribute("method");
  if (event.defaultPrevented || method?.toLowerCase() !== "post") return;
  try { sessionStorage.setItem(SENT, "1"); } catch { /* private windows may refuse storage */ }
});
