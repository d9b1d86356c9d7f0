// Puts OpenCode's folder storage together: many small files become one export a session, byte for byte what
// `manage.py import` makes of the same folder (guard_core/recordings/formats/opencode/storage.py). Reads nothing until asked.
const PLACE = /^((?:.*\/)?storage)\/(.+)$/s;
const SESSION = /^session\/(?!share\/)[^/]+\/(ses_[^/]*)\.json$/; // session/share: the keys of shared sessions
const MESSAGE = /^(?:session\/)?message\/(ses_[^/]+)\/(msg_[^/]*)\.json$/;
const PART = /^(?:session\/)?part\/(?:ses_[^/]+\/)?(msg_[^/]+)\/prt_[^/]*\.json$/;
const AT_ONCE = 50; // messages that are read at a time
const LEFT_OUT = "{}"; // in place of a damaged piece: the reading notes it

// Files with their paths: those outside of a storage folder as they are, one for each session in it, and the pieces
// of no session. What else such a folder holds is nothing of a session.
export function putTogether(files) {
  const storages = new Map();
  const inside = files.map((item) => ({ item, place: item.path.match(PLACE) }));
  for (const { item, place } of inside) {
    const session = place?.[2].match(SESSION);
    if (!session) continue;
    if (!storages.has(place[1])) storages.set(place[1], { sessions: [], pieces: new Map() });
    storages.get(place[1]).sessions.push({ item, id: session[1] });
  }
  const others = [];
  for (const { item, place } of inside) {
    const storage = storages.get(place?.[1]);
    const owner = (place?.[2].match(MESSAGE) ?? place?.[2].match(PART))?.[1];
    if (!storage) others.push(item);
    else if (owner && !storage.pieces.get(owner)?.push(item)) storage.pieces.set(owner, [item]);
  }
  const all = [...storages.values()];
  const whole = all.flatMap(({ sessions, pieces }) => sessions.map(({ item, id }) => session(item, id, pieces)));
  return { files: [...others, ...whole], loose: ordered(all.flatMap(unowned)) };
}

// A session as a file to send: its name and size as far as they are known, and `gather` for what it holds.
function session(item, id, pieces) {
  const messages = ordered(pieces.get(id)).map((message) => ({ message, parts: ordered(pieces.get(stem(message))) }));
  const all = [item, ...messages.flatMap(({ message, parts }) => [message, ...parts])];
  const size = all.reduce((sum, piece) => sum + piece.file.size, 0);
  return { file: { name: item.file.name, size }, path: item.path, gather: (options) => gather(item, messages, options) };
}

// `leave` is called with each damaged piece that was left out; without it such a piece is an error.
async function gather(item, messages, { signal, read, leave }) {
  const value = (piece) => json(piece, leave).finally(() => read(piece.file.size));
  const whole = async ({ message, parts }) => {
    const [info, ...inside] = await Promise.all([message, ...parts].map(value));
    return `{"info":${info},"parts":[${inside.join(",")}]}`;
  };
  const text = ['{"info":', await value(item), ',"messages":['];
  for (let start = 0; start < messages.length; start += AT_ONCE) {
    signal.throwIfAborted();
    const some = await Promise.all(messages.slice(start, start + AT_ONCE).map(whole));
    text.push(...some.flatMap((message, index) => [start + index ? "," : "", message]));
  }
  return new File([...text, "]}"], item.file.name);
}

// The JSON value of a piece, unchanged; the server checks the rest.
async function json(piece, leave) {
  const name = piece.path.split("/").slice(-2).join("/");
  let bytes;
  try {
    bytes = await piece.file.arrayBuffer();
  } catch {
    throw new Error(`the file ${name} cannot be read`);
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    JSON.parse(text);
    return text.trim();
  } catch {
    if (!leave) throw new Error(`the file ${name} holds no JSON value`);
    leave(name);
    return LEFT_OUT;
  }
}

function unowned({ sessions, pieces }) {
  const owners = new Set(sessions.map(({ id }) => id));
  for (const { id } of sessions) for (const message of pieces.get(id) ?? []) owners.add(stem(message));
  return [...pieces].filter(([owner]) => !owners.has(owner)).flatMap(([, items]) => items);
}

// In the order of the ids, which is that of their making.
function ordered(items = []) {
  return [...items].sort((a, b) => (a.file.name < b.file.name ? -1 : 1));
}

function stem(item) {
  return item.file.name.replace(/\.json$/, "");
}
