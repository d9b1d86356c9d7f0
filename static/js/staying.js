// A page that is loaded anew by itself looks afterwards as it did before: scrolled to the same place, with the same folds open
// and the focus on the same element.
const PLACE = "place-kept"; // in this tab: how the page looked that is loaded anew

const nameOf = (element) => (element.ariaLabel || element.textContent).replace(/\s+/g, " ").trim();
const lettersOf = (element) => nameOf(element).replace(/[^\p{L}]/gu, ""); // numbers may rise
const boxes = () => [document.documentElement, document.body];
const folds = () => [...document.querySelectorAll("#main details")];
const alike = (element) => [...document.querySelectorAll(element.tagName)];

export function keepPlace() {
  const focused = document.activeElement;
  const place = {
    href: location.href,
    tops: boxes().map((box) => box.scrollTop),
    open: folds().map((fold) => fold.open && lettersOf(fold.querySelector("summary"))),
    focused: focused && focused !== document.body && {
      tag: focused.tagName,
      index: alike(focused).indexOf(focused),
      name: nameOf(focused),
      letters: lettersOf(focused),
    },
  };
  sessionStorage.setItem(PLACE, JSON.stringify(place));
}

export const forgetPlace = () => sessionStorage.removeItem(PLACE);

export function restorePlace() {
  const place = JSON.parse(sessionStorage.getItem(PLACE));
  forgetPlace();
  if (place?.href !== location.href) return;
  for (const fold of folds()) if (place.open.includes(lettersOf(fold.querySelector("summary")))) fold.open = true;
  boxes().forEach((box, index) => (box.scrollTop = place.tops[index]));
  if (!place.focused) return;
  const { tag, index, ...words } = place.focused;
  const all = [...document.querySelectorAll(tag)];
  const nearest = [all[index], ...all].filter(Boolean);
  const like = (read, known) => known && nearest.find((element) => read(element) === known);
  const same = like(nameOf, words.name) || like(lettersOf, words.letters);
  if (same) same.focus({ preventScroll: true });
}
