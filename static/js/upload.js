// Sends dropped, chosen or pasted sessions with progress, and says in words what the server refused.
// Hooks: form[data-upload], [data-drop] (a zone; the whole window takes drops as well), [data-upload-status].
const form = document.querySelector("form[data-upload]");
const status = document.querySelector("[data-upload-status]");
const MAX_FILES = 2000;

function element(name, className, text = "") {
  const node = document.createElement(name);
  node.className = className;
  node.textContent = text;
  return node;
}

function say(...nodes) {
  status.replaceChildren(...nodes);
  status.hidden = nodes.length === 0;
}

function send(files, mode) {
  const data = new FormData(form);
  data.delete("file");
  for (const file of files) data.append("file", file, file.name);
  if (files.length) data.delete("text");
  if (mode) data.set("mode", mode);
  const bar = element("progress", "");
  bar.max = 1;
  const title = files.length > 1 ? `${files.length} files` : files[0]?.name ?? "the pasted session";
  const line = element("p", "small muted", `Sending ${title} …`);
  const stop = element("button", "btn btn-small", "Cancel");
  stop.type = "button";
  const request = new XMLHttpRequest();
  stop.addEventListener("click", () => { request.abort(); say(); });
  request.upload.addEventListener("progress", (event) => { if (event.lengthComputable) bar.value = event.loaded / event.total; });
  request.upload.addEventListener("load", () => { line.textContent = `Reading ${title} …`; bar.removeAttribute("value"); });
  request.addEventListener("load", () => answered(request, files));
  request.addEventListener("error", () => say(refusal("The server cannot be reached, or closed the connection: is the file larger than it takes?")));
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "application/json");
  say(line, bar, stop);
  request.send(data);
}

function answered(request, files) {
  let answer = {};
  try { answer = JSON.parse(request.responseText); } catch { /* a plain sentence, as the body limit sends it */ }
  const imports = answer.imports ?? [];
  const failed = imports.filter((item) => item.state === "failed");
  if (request.status >= 400 && !imports.length) {
    say(refusal(answer.error || request.responseText.slice(0, 300) || `The server answered with an error (${request.status}).`));
  } else if (imports.length === 1 && !failed.length) {
    location.assign(imports[0].url);
  } else if (!failed.length) {
    location.assign("/");
  } else {
    say(...failed.map((item) => failure(item, files)), ...(failed.length < imports.length ? [link(imports.length - failed.length)] : []));
  }
}

function refusal(sentence) {
  const notice = element("div", "notice notice-error", sentence);
  notice.setAttribute("role", "alert");
  return notice;
}

function failure(item, files) {
  const place = item.line ? `line ${item.line}${item.column ? `, column ${item.column}` : ""}: ` : "";
  const notice = refusal("");
  const name = element("strong", "", `${item.name}: `);
  const text = element("span", "", `${place}${item.error}. Nothing of it is kept. `.replace("..", "."));
  notice.append(name, text);
  const mine = files.filter((file) => file.name === item.name || files.length === 1);
  if (item.mendable && (mine.length || !files.length)) {
    const again = element("button", "btn btn-small", "Leave damaged lines out and import the rest");
    again.type = "button";
    again.addEventListener("click", () => send(mine, "lenient"));
    notice.append(again);
  }
  return notice;
}

function link(count) {
  const line = element("p", "");
  const anchor = element("a", "", `${count} ${count === 1 ? "file was" : "files were"} imported: show the list`);
  anchor.href = "/";
  line.append(anchor);
  return line;
}

// A dropped folder is walked; what a browser cannot walk comes as plain files.
async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files];
  const files = [];
  for (const entry of entries) await walk(entry, files);
  return files;
}

async function walk(entry, files) {
  if (files.length >= MAX_FILES) return;
  if (entry.isFile) {
    files.push(await new Promise((resolve, reject) => entry.file(resolve, reject)));
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const batch = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!batch.length) return;
    for (const child of batch) await walk(child, files);
  }
}

function hasFiles(event) {
  return [...(event.dataTransfer?.types ?? [])].includes("Files");
}

if (form && status) {
  let veil = null;
  const lift = () => { veil?.remove(); veil = null; document.body.classList.remove("is-dropping"); };
  form.addEventListener("submit", (event) => {
    const files = [...(form.querySelector("input[type=file]")?.files ?? [])];
    const text = form.querySelector("textarea[name=text]")?.value.trim();
    if (!files.length && !text) return;
    event.preventDefault();
    send(files);
  });
  form.querySelector("input[type=file]")?.addEventListener("change", (event) => {
    if (event.target.files.length && form.hasAttribute("data-upload-at-once")) send([...event.target.files]);
  });
  // What is pasted outside of a field is a session: a copied file, or its text.
  document.addEventListener("paste", (event) => {
    if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
    const files = [...(event.clipboardData?.files ?? [])];
    const text = event.clipboardData?.getData("text/plain").trim();
    if (files.length) send(files);
    else if (text) send([new File([text], "pasted session")]);
  });
  window.addEventListener("dragenter", (event) => {
    if (!hasFiles(event) || veil) return;
    veil = element("div", "drop-veil", "Drop to import");
    document.body.append(veil);
    document.body.classList.add("is-dropping");
  });
  window.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
  window.addEventListener("dragleave", (event) => { if (!event.relatedTarget) lift(); });
  window.addEventListener("drop", async (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    lift();
    const files = await dropped(event.dataTransfer);
    if (files.length) send(files);
  });
}
