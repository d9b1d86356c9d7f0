// Ctrl+K or ⌘K: the list that goes anywhere. Enter opens the first place; without JavaScript /go is a page.
const palette = document.getElementById("palette");

document.addEventListener("keydown", (event) => {
  if (!palette || event.altKey || event.shiftKey || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k") return;
  event.preventDefault();
  if (palette.open) return palette.close();
  const session = /^\/s\/([0-9a-f-]{36})\//.exec(location.pathname);
  palette.querySelector("[name=s]").value = session ? session[1] : "";
  palette.showModal();
  const field = palette.querySelector("[name=q]");
  field.select();
  const query = new URLSearchParams(new FormData(field.form));
  htmx.ajax("GET", `${field.form.action}?${query}`, { target: "#places", swap: "outerHTML" });
});

palette?.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-go]")) return;
  event.preventDefault();
  await htmx.ajax("GET", `${form.action}?${new URLSearchParams(new FormData(form))}`, { target: "#places", swap: "outerHTML" });
  palette.querySelector("#places a")?.click();
});
