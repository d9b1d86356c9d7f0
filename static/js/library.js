// The session list: choosing rows, and a list that does not change under the hand that chooses.
const list = () => document.getElementById("sessions");
const picks = () => [...(list()?.querySelectorAll("input[form=bulk]") ?? [])];
const chosen = () => picks().filter((box) => box.checked);
let last = null;

function count() {
  const number = chosen().length;
  const words = list()?.querySelector("[data-bulk-count]");
  if (words) words.textContent = number ? `${number} chosen` : "Chosen sessions";
  const all = list()?.querySelector("[data-pick-all]");
  if (!all) return;
  all.hidden = false;
  all.checked = number > 0 && number === picks().length;
  all.indeterminate = number > 0 && !all.checked;
}

document.addEventListener("click", (event) => {
  const box = event.target.closest?.("input[form=bulk]");
  if (!box) return;
  const boxes = picks();
  if (event.shiftKey && boxes.includes(last)) {
    const [from, to] = [boxes.indexOf(last), boxes.indexOf(box)].sort((a, b) => a - b);
    for (const other of boxes.slice(from, to + 1)) other.checked = box.checked;
  }
  last = box;
  count();
});

document.addEventListener("change", (event) => {
  if (!event.target.matches?.("[data-pick-all]")) return;
  for (const box of picks()) box.checked = event.target.checked;
  count();
});

// A session that has just been read does not sweep away what was chosen or is being typed.
document.addEventListener("htmx:beforeRequest", (event) => {
  const byItself = event.detail.requestConfig?.triggeringEvent?.type === "sessions-changed";
  if (byItself && (chosen().length || list()?.querySelector("input[name=title]"))) event.preventDefault();
});
document.addEventListener("htmx:afterSwap", () => {
  last = null;
  count();
  list()?.querySelector("input[name=title]")?.select();
});

// Escape leaves the field for another title. Cancel has the focus first: the link to rename, which replaces it, keeps it.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !event.target.matches?.(".renaming input")) return;
  const cancel = event.target.parentElement.querySelector("a");
  cancel.focus();
  cancel.click();
});

count();
