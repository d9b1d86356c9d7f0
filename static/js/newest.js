// Forms marked data-newest ask on every change, for the last of the changes behind the answer that is under way
// (hx-sync="this:queue last"). That answer is not shown then: it is neither drawn nor an entry of the history.
const query = (form) => new URLSearchParams(new FormData(form)).toString();
const asked = new WeakMap(); // by form, what the request under way asks for
const wanted = new WeakMap(); // and what was wanted last; a field that is being typed in is not wanted yet

document.addEventListener("htmx:confirm", ({ target }) => {
  if (target.matches("form[data-newest]")) wanted.set(target, query(target));
});
document.addEventListener("htmx:beforeSend", ({ target }) => {
  if (!wanted.has(target)) return;
  asked.set(target, query(target));
  wanted.set(target, query(target));
});
document.addEventListener("htmx:beforeSwap", (event) => {
  const form = event.detail.requestConfig?.elt;
  if (form && wanted.get(form) !== asked.get(form)) event.preventDefault();
});
