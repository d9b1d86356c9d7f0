// The list of running agents: says what has arisen since the page was opened, politely, once each.
// The list is replaced every two seconds; what was said before is not said again.
import { notify, offer } from "./notifying.js";

const words = document.querySelector("[data-alerts]");
const said = new Set(marks().map(([key]) => key));

offer(document.querySelector("[data-notify]"), (sentence) => (words.textContent = sentence));

document.addEventListener("htmx:afterSwap", () => {
  const more = marks().filter(([key]) => !said.has(key));
  for (const [key] of more) said.add(key);
  for (const [key, , title, name] of more) notify(key, title, name);
  if (more.length) words.textContent = more.map(([, sentence]) => sentence).join(" · ");
});

function marks() {
  return [...document.querySelectorAll("[data-alert]")].map((mark) => [
    mark.dataset.alert,
    `${mark.dataset.alertTitle}: ${mark.textContent}`,
    mark.dataset.alertTitle,
    mark.textContent,
  ]);
}
