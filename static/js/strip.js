// The overview strip: a click goes to the step under the pointer; the cursor follows the step that is shown.
// Steps are counted from 1. The strip may be replaced with its page's settings, so it is looked up each time.
document.addEventListener("click", (event) => {
  const strip = event.target.closest("[data-strip]");
  const count = Number(strip?.dataset.count ?? 0);
  if (!count || event.ctrlKey || event.metaKey || event.detail === 0) return;
  event.preventDefault();
  const box = strip.getBoundingClientRect();
  const step = Math.min(count, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * count)) + 1);
  const chosen = new CustomEvent("step:choose", { bubbles: true, cancelable: true, detail: { step } });
  if (!strip.dispatchEvent(chosen)) return;
  const url = new URL(strip.dataset.url, location.href);
  url.searchParams.set("at", step);
  location.assign(url);
});

document.addEventListener("step:shown", (event) => {
  const strip = document.querySelector("[data-strip]");
  const cursor = strip?.querySelector("[data-cursor]");
  if (!cursor) return;
  cursor.hidden = false;
  cursor.style.left = `${(100 * (event.detail.step - 0.5)) / Number(strip.dataset.count)}%`;
});
