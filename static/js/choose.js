// The sessions of one file: all ticked; found, sorted and unticked here, kept or taken off the list by the server.
// Hooks: form[data-choose] with a json script #all-sessions, [data-sort] heads, [data-choose-*] controls.
const SHOWN = 100; // rows at a time

function start(form) {
  if (form.dataset.ready) return;
  form.dataset.ready = "yes";
  const sessions = JSON.parse(form.querySelector("#all-sessions").textContent);
  const part = (name) => form.querySelector(`[data-choose-${name}]`);
  const body = form.querySelector("tbody");
  const find = part("find").querySelector("input");
  const out = new Set();
  let sort = "";
  let down = false;
  let shown = SHOWN;

  const found = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = sessions.filter((item) => words.every((word) => `${item.title} ${item.model} ${item.standing}`.toLowerCase().includes(word)));
    if (!sort) return hits;
    const order = (a, b) => (typeof a[sort] === "number" ? a[sort] - b[sort] : a[sort].localeCompare(b[sort]));
    return hits.sort((a, b) => (down ? order(b, a) : order(a, b)));
  };

  function cell(text, className, tag = "td") {
    const node = document.createElement(tag);
    node.className = className;
    node.textContent = typeof text === "number" ? text.toLocaleString("en") : text;
    return node;
  }

  function row(item) {
    const line = document.createElement("tr");
    const pick = cell("", "col-pick");
    const box = document.createElement("input");
    Object.assign(box, { type: "checkbox", value: item.id, checked: !out.has(item.id) });
    box.setAttribute("aria-label", `Keep ${item.title}`);
    pick.append(box);
    const head = cell("", "", "th");
    head.scope = "row";
    const link = document.createElement("a");
    link.href = item.url;
    link.textContent = item.title;
    head.append(link);
    if (item.standing) head.append(" ", cell(item.standing, "badge badge-outline", "span"));
    const peak = item.peak ? cell(item.peak, "num") : cell("no call", "num muted");
    if (item.peak && item.peak_source) peak.append(" ", cell(item.peak_source, "source", "span"));
    line.append(pick, head, cell(item.model, ""), cell(item.started, "nowrap"), cell(item.messages, "num"), cell(item.calls, "num"), peak, cell(item.compactions, "num"));
    return line;
  }

  function count() {
    const kept = sessions.length - out.size;
    part("keep").textContent = out.size ? `Keep ${kept.toLocaleString("en")} of ${sessions.length.toLocaleString("en")}` : "Keep all";
    part("keep").disabled = kept === 0;
  }

  function draw() {
    const hits = found();
    body.replaceChildren(...hits.slice(0, shown).map(row));
    part("shown").textContent = hits.length === sessions.length && hits.length <= shown ? "" : `${Math.min(shown, hits.length).toLocaleString("en")} of ${hits.length.toLocaleString("en")} shown`;
    part("more").hidden = hits.length <= shown;
    for (const head of form.querySelectorAll("[data-sort]")) {
      if (head.dataset.sort === sort) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    count();
  }

  for (const head of form.querySelectorAll("[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const numeric = typeof sessions[0][head.dataset.sort] === "number";
      down = sort === head.dataset.sort ? !down : numeric;
      sort = head.dataset.sort;
      draw();
    });
  }
  find.addEventListener("input", () => { shown = SHOWN; draw(); });
  find.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  part("more").addEventListener("click", () => { shown += SHOWN; draw(); });
  part("all").addEventListener("click", () => { for (const item of found()) out.delete(item.id); draw(); });
  part("none").addEventListener("click", () => { for (const item of found()) out.add(item.id); draw(); });
  body.addEventListener("change", (event) => {
    if (event.target.checked) out.delete(event.target.value);
    else out.add(event.target.value);
    count();
  });
  form.addEventListener("submit", (event) => {
    if (!out.size) { event.preventDefault(); location.assign("/"); return; }
    form.querySelector("[name=listed]").value = "";
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name: "out", value: [...out].join(",") });
    form.append(field);
  });
  part("find").hidden = false;
  draw();
}

function look() {
  const form = document.querySelector("form[data-choose]");
  if (form) start(form);
}

document.addEventListener("htmx:afterSwap", look); // the report takes the place of the progress
look();
