// A comment that is being written stays with its place until it is stored: it is in its field again after another step was
// shown, a page reloaded, or a request failed. Only this tab knows it, for one account, until that signs out.
const FIELD = "textarea.comment-field";
const SIGN_OUT = "form[data-sign-out]";
const DRAFT = "draft ";
const PLACE = "input[type=hidden]:not([name=csrfmiddlewaretoken], [name=token], [name=settings], [name=here])";

const placeOf = (form) => Array.from(form.querySelectorAll(PLACE), ({ name, value }) => `${name}=${value}`).join("&");
const keyOf = ({ form, id, dataset }) => `${DRAFT}${dataset.writer} ${form.action} ${placeOf(form)} ${id}`;
const wordsOf = (text) => text.replace(/\s/g, "");

function isStored(text) {
  return [...document.querySelectorAll(".comment-text")].some((comment) => wordsOf(comment.textContent) === wordsOf(text));
}

function restore() {
  for (const field of document.querySelectorAll(FIELD)) {
    const draft = sessionStorage.getItem(keyOf(field));
    if (draft === null || field.value !== field.defaultValue) continue;
    if (isStored(draft)) {
      sessionStorage.removeItem(keyOf(field));
      continue;
    }
    field.value = draft;
    const fold = field.closest("details");
    if (fold) fold.open = true;
  }
}

document.addEventListener("input", ({ target }) => {
  if (!target.matches(FIELD)) return;
  if (target.value.trim() && target.value !== target.defaultValue) sessionStorage.setItem(keyOf(target), target.value);
  else sessionStorage.removeItem(keyOf(target));
});
document.addEventListener("submit", ({ target }) => {
  if (!target.matches(SIGN_OUT)) return;
  for (const key of Object.keys(sessionStorage).filter((name) => name.startsWith(DRAFT))) sessionStorage.removeItem(key);
});
document.addEventListener("htmx:afterSwap", restore);
restore();
