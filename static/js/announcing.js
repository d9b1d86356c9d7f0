// Reads out what an answer changes in a page, by the words of the first [data-said] in the part that came: at once where a
// person asked for it; at most once in a while where the part asked by itself, as progress does. So does what changes often.
const PAUSE = 10_000; // milliseconds
const BY_A_PERSON = ["click", "change", "input", "submit"]; // events; a part asks at "load" or "every"
let said = -Infinity;
let timer = 0;
let latest = "";

export function announceNowAndThen(words) {
  latest = words;
  timer ||= setTimeout(() => announce(latest), Math.max(0, said + PAUSE - performance.now()));
}

function announce(words) {
  clearTimeout(timer);
  said = performance.now();
  timer = 0;
  document.getElementById("announce").textContent = words;
}

document.addEventListener("htmx:afterSwap", ({ target: part, detail }) => {
  const words = part.querySelector("[data-said]")?.textContent.replace(/\s+/g, " ").trim();
  if (!words || !detail.requestConfig) return; // of a part that a script of ours shows, that script speaks
  if (BY_A_PERSON.includes(detail.requestConfig.triggeringEvent?.type)) announce(words);
  else announceNowAndThen(words);
});
