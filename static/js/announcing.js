// Reads out what changes often: its latest words, at most once in a while.
const PAUSE = 10_000; // milliseconds
let said = -Infinity;
let timer = 0;
let latest = "";

export function announceNowAndThen(words) {
  latest = words;
  timer ||= setTimeout(announce, Math.max(0, said + PAUSE - performance.now()));
}

function announce() {
  said = performance.now();
  timer = 0;
  document.getElementById("announce").textContent = latest;
}
