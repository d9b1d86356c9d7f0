// Whether a page is in use in a way that loading another one would end: a field has the focus, a dialog is open, a request
// is under way, or a form holds what was changed and has not been sent.
const FIELDS = "input, select, textarea, [contenteditable]";
const PRESSED = "input[type=checkbox], input[type=radio]";
const changed = new Set(); // fields of forms that were changed
const sent = new Map(); // by field: what it held when its form was last sent by a script

function held(field) {
  if (field.matches(PRESSED)) return String(field.checked);
  return field.value;
}

function original(field) {
  if (field.matches(PRESSED)) return String(field.defaultChecked);
  if (!field.matches("select")) return field.defaultValue;
  return ([...field.options].find((option) => option.defaultSelected) ?? field.options[0])?.value;
}

function isUnsent(field) {
  return !field.closest("dialog") && held(field) !== (sent.get(field) ?? original(field));
}

export function isInUse(but) {
  for (const field of changed) if (!field.isConnected) changed.delete(field);
  const focused = document.activeElement?.closest(FIELDS);
  if (focused && !but.contains(focused)) return true;
  return document.querySelector("dialog[open], .htmx-request") !== null || [...changed].some(isUnsent);
}

for (const name of ["input", "change"]) {
  document.addEventListener(name, ({ target }) => target.form && changed.add(target));
}

const fieldsOf = (sender) => [...changed].filter((field) => field.form === sender.closest("form"));

document.addEventListener("htmx:beforeSend", ({ detail }) => {
  for (const field of fieldsOf(detail.elt)) sent.set(field, held(field));
});

document.addEventListener("htmx:afterRequest", ({ detail }) => {
  if (!detail.successful) for (const field of fieldsOf(detail.elt)) sent.delete(field);
});
