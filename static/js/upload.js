// Sends dropped, chosen or pasted sessions with progress, and says in words what the server refused.
// Hooks: form[data-upload], [data-drop] (a zone; the whole window takes drops as well), [data-upload-status],
// [data-folder] (a way to choose a folder, for browsers with script).
import { bundled } from "./folders.js";
import { putTogether } from "./storage.js";

const form = document.querySelector("form[data-upload]");
const status = document.querySelector("[data-upload-status]");
const MAX_FILES = 20000; // to send
const MAX_FOUND = 200000; // in a folder: many small files may be one session
const BATCH_FILES = 50; // in one request
const BATCH_BYTES = 32e6; // a larger file has a request of its own
const NAMED = 4; // files of one reason that are named
const WAIT_FOR_ALL = 60000; // milliseconds until a folder's files that are not read yet are said to be
const ASK_EVERY = 300; // milliseconds
const LOOK_EVERY = 500; // files found in a folder, until their number is shown again
const LIST = "/?sort=-added"; // the sessions added last come first, whatever else the list holds
const DAMAGED = "a damaged piece of OpenCode's storage folder: it holds no JSON value";
const LOOSE = "a piece of OpenCode's storage folder that belongs to no session in it";

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

// A file with its place in the folder that was dropped; a database and its write-ahead log stay in one batch.
function placed(file, path = "") {
  return { file, path: path || file.webkitRelativePath || "" };
}

function batches(files) {
  const keyed = [...files].sort((a, b) => unit(a).localeCompare(unit(b)));
  const found = [];
  let bytes = 0;
  keyed.forEach((item, index) => {
    const joined = index > 0 && unit(item) === unit(keyed[index - 1]);
    if (!joined && (!found.length || found.at(-1).length >= BATCH_FILES || bytes + item.file.size > BATCH_BYTES)) {
      found.push([]);
      bytes = 0;
    }
    found.at(-1).push(item);
    bytes += item.file.size;
  });
  return found;
}

function unit(item) {
  return (item.path || item.file.name).replace(/-(wal|shm)$/, "");
}

// The form of a request. A session in many files is joined now; `outcome` gets what went wrong.
async function form_of(files, mode, outcome, signal, read) {
  const data = new FormData(form);
  data.delete("file");
  if (files.length) data.delete("text");
  if (mode) data.set("mode", mode);
  const leave = data.get("mode") === "lenient" && ((name) => outcome.aside.push({ name, reason: DAMAGED }));
  for (const { file, path, gather } of files) {
    try {
      data.append("file", gather ? await gather({ signal, read, leave }) : file, file.name);
      data.append("path", gather ? "" : path); // a session that is known as one is not a file that merely lies in a folder
    } catch (error) {
      if (!signal.aborted) outcome.imports.push({ name: file.name, state: "failed", error: error.message, mendable: true });
    }
  }
  return data;
}

// All files, some at a time, so that no request is larger than the server takes; then what became of them. `earlier` is
// what stays of the upload that a file is sent again from: its notices about other files, and its imports, which all of them share.
async function send(files, mode, loose = [], earlier = { notices: [], imports: [] }) {
  const bar = element("progress", "");
  bar.max = 1;
  const title = files.length > 1 ? `${files.length.toLocaleString("en")} files` : files[0]?.file.name ?? "the pasted session";
  const line = element("p", "small muted", `Sending ${title} …`);
  const stop = element("button", "btn btn-small", "Cancel");
  stop.type = "button";
  const control = new AbortController();
  stop.addEventListener("click", () => control.abort());
  const able = (is) => earlier.notices.flatMap((notice) => [...notice.querySelectorAll("button")]).forEach((button) => { button.disabled = !is; });
  able(false);
  say(line, bar, stop, ...earlier.notices);
  const total = files.reduce((sum, { file, gather }) => sum + file.size * (gather ? 2 : 1), 0) || 1; // read, then sent
  const outcome = { imports: [], aside: loose.map(({ file }) => ({ name: file.name, reason: LOOSE })), refused: [] };
  let done = 0;
  const reach = (bytes) => { bar.value = Math.min(1, (done + bytes) / total); };
  const read = (bytes) => { done += bytes; reach(0); };
  for (const batch of files.length ? batches(files) : [[]]) {
    const data = await form_of(batch, mode, outcome, control.signal, read);
    if (control.signal.aborted) break;
    const answer = batch.length && !data.has("file") ? {} : await post(data, control.signal, reach, () => {
      if (files.length < 2) { line.textContent = `Reading ${title} …`; bar.removeAttribute("value"); }
    });
    if (control.signal.aborted) break;
    done += batch.reduce((sum, item) => sum + item.file.size, 0);
    if (files.length > 1) line.textContent = `Sending ${title} … ${Math.round(100 * done / total)} %`;
    outcome.imports.push(...answer.imports ?? []);
    outcome.aside.push(...answer.aside ?? []);
    if (answer.error) outcome.refused.push(answer.error);
  }
  if (outcome.aside.length || outcome.refused.length || files.some((item) => item.path) || outcome.imports.length > files.length) {
    line.textContent = `Reading ${title} …`;
    bar.removeAttribute("value");
    await ended(outcome, control.signal);
  }
  able(true);
  if (control.signal.aborted) {
    const known = [...earlier.imports, ...outcome.imports];
    say(...earlier.notices, ...known.length ? [link(known)] : []);
    return;
  }
  show(outcome, files, earlier);
}

function sendAll(found) {
  const { files: others, loose } = putTogether(found);
  const files = bundled(others);
  const limit = found.length >= MAX_FOUND ? MAX_FOUND : MAX_FILES;
  if (found.length >= MAX_FOUND || files.length >= MAX_FILES) say(refusal(`A folder may hold ${limit.toLocaleString("en")} files here; import a larger one with “manage.py import”.`));
  else if (files.length) send(files, "", loose);
}

function post(data, signal, progress, arrived) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    signal.addEventListener("abort", () => { request.abort(); resolve({}); });
    request.upload.addEventListener("progress", (event) => progress(event.loaded));
    request.upload.addEventListener("load", arrived);
    request.addEventListener("error", () => resolve({ error: "The server cannot be reached, or closed the connection: is the file larger than the server accepts?" }));
    request.addEventListener("load", () => {
      let answer = {};
      try { answer = JSON.parse(request.responseText); } catch { /* a plain sentence, as the body limit sends it */ }
      if (request.status >= 400 && !answer.imports) answer.error ||= request.responseText.slice(0, 300) || `The server answered with an error (${request.status}).`;
      resolve(answer);
    });
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.send(data);
  });
}

function underWay(item) {
  return item.state === "received" || item.state === "running";
}

// Until each import has ended, or a minute is over: only then is it known what in a folder is not a session. An archive that
// has been unpacked gives way to its files.
async function ended(outcome, signal) {
  const end = Date.now() + WAIT_FOR_ALL;
  for (let index = 0; index < outcome.imports.length; index += 1) {
    const item = outcome.imports[index];
    while (underWay(item) && !signal.aborted && Date.now() < end) {
      const address = new URL("status", new URL(item.report, location.href));
      const answer = await fetch(address, { headers: { Accept: "application/json" }, signal }).catch(() => null);
      if (answer?.ok) Object.assign(item, await answer.json());
      if (underWay(item)) await new Promise((resolve) => { setTimeout(resolve, ASK_EVERY); });
    }
    if (item.members?.imports.length) {
      outcome.aside.push(...item.members.aside);
      outcome.imports.splice(index, 1, ...item.members.imports);
      index -= 1;
    }
  }
}

function show(outcome, files, earlier) {
  const failed = outcome.imports.filter((item) => item.state === "failed" && !item.aside);
  const good = earlier.imports;
  good.push(...outcome.imports.filter((item) => item.state !== "failed"));
  const aside = [...outcome.aside, ...outcome.imports.filter((item) => item.aside).map((item) => ({ name: item.name, reason: "not a session in a supported format" }))];
  const wrong = [...outcome.refused.map(refusal), ...failed.map((item) => failure(item, files, good)), ...earlier.notices];
  if (!wrong.length && !aside.length && good.length) {
    location.assign(good.length === 1 ? good[0].url : LIST);
  } else {
    say(...wrong, ...(good.length ? [link(good)] : []), ...(aside.length ? [left(aside)] : []));
    document.body.dispatchEvent(new CustomEvent("sessions-changed", { bubbles: true }));
  }
}

// What lay beside the sessions of a folder, by reason; nothing of it is a mistake.
function left(aside) {
  const box = element("details", "notice");
  box.append(element("summary", "", `${aside.length.toLocaleString("en")} other ${aside.length === 1 ? "file in the folder was" : "files in the folder were"} skipped`));
  const reasons = new Map();
  for (const item of aside) reasons.set(item.reason, [...reasons.get(item.reason) ?? [], item]);
  const list = element("ul", "left-aside");
  for (const [reason, items] of reasons) {
    const names = items.slice(0, NAMED).map((item) => item.name).join(", ");
    const entry = element("li", "", "");
    entry.append(element("strong", "num", `${items.length} × `), element("span", "", reason), element("span", "muted small", ` – ${names}${items.length > NAMED ? ", …" : ""}`));
    list.append(entry);
  }
  box.append(list);
  return box;
}

function refusal(sentence) {
  const notice = element("div", "notice notice-error", sentence);
  notice.setAttribute("role", "alert");
  return notice;
}

function failure(item, files, imports) {
  const place = item.line ? `line ${item.line}${item.column ? `, column ${item.column}` : ""}: ` : "";
  const notice = refusal("");
  const name = element("strong", "", `${item.name}: `);
  const text = element("span", "", `${place}${item.error}. Nothing was stored. `.replace("..", "."));
  notice.append(name, text);
  const mine = files.filter(({ file }) => file.name === item.name || files.length === 1);
  if (item.mendable && (mine.length || !files.length)) {
    const again = element("button", "btn btn-small", "Skip damaged lines and import the rest");
    again.type = "button";
    again.addEventListener("click", () => {
      const notices = [...status.querySelectorAll(":scope > .notice")].filter((other) => other !== notice);
      send(mine, "lenient", [], { notices, imports });
    });
    notice.append(again);
  }
  return notice;
}

// What was imported, and what a busy worker has not read yet, which may still turn out to be no session.
function link(imports) {
  const count = imports.filter((item) => item.state === "done").length;
  const later = imports.filter(underWay).length;
  const words = [
    ...(count || !later ? [`${count} ${count === 1 ? "file was" : "files were"} imported`] : []),
    ...(later ? [`${later} ${later === 1 ? "file is" : "files are"} still to be read`] : []),
  ];
  const line = element("p", "");
  const anchor = element("a", "", `${words.join(", ")}: show the list`);
  anchor.href = LIST;
  line.append(anchor);
  return line;
}

// A dropped folder is walked, with what was found so far; what a browser cannot walk comes as plain files.
async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => placed(file));
  const files = [];
  for (const entry of entries) await walk(entry, files);
  return files;
}

async function walk(entry, files) {
  if (files.length >= MAX_FOUND) return;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    const path = entry.fullPath.replace(/^\//, "");
    files.push(placed(file, path.includes("/") ? path : ""));
    if (files.length % LOOK_EVERY === 0) say(element("p", "small muted", `Looking through the folder … ${files.length.toLocaleString("en")} files`));
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const batch = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!batch.length) return;
    await Promise.all(batch.map((child) => walk(child, files)));
  }
}

function hasFiles(event) {
  return [...(event.dataTransfer?.types ?? [])].includes("Files");
}

if (form && status) {
  let veil = null;
  const lift = () => { veil?.remove(); veil = null; document.body.classList.remove("is-dropping"); };
  form.addEventListener("submit", (event) => {
    const files = [...(form.querySelector("input[type=file]")?.files ?? [])].map((file) => placed(file));
    const text = form.querySelector("textarea[name=text]")?.value.trim();
    if (!files.length && !text) return;
    event.preventDefault();
    send(files);
  });
  for (const input of form.querySelectorAll("input[type=file]")) {
    input.addEventListener("change", () => {
      if (input.files.length && form.hasAttribute("data-upload-at-once")) sendAll([...input.files].map((file) => placed(file)));
    });
  }
  const folder = form.querySelector("[data-folder]");
  if (folder) folder.hidden = false;
  // What is pasted outside of a field is a session: a copied file, or its text.
  document.addEventListener("paste", (event) => {
    if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
    const files = [...(event.clipboardData?.files ?? [])].map((file) => placed(file));
    const text = event.clipboardData?.getData("text/plain").trim();
    if (files.length) send(files);
    else if (text) send([placed(new File([text], "pasted session"))]);
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
    sendAll(files);
  });
}
