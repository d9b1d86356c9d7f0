// Sessions that an agent keeps in several files: those of a folder become one ZIP archive, byte for byte what
// `manage.py import` makes of the same folder (guard_core/recordings/reading/folders.py). Reads nothing until asked.
const KINDS = [
  { // Kimi CLI
    members: /^(?:subagents\/[^/]+\/)?(?:context(?:_[0-9a-z_]+)?|wire)\.jsonl$/,
    marker: /^context(?:_[0-9]+)?\.jsonl$/,
  },
  { // Mistral Vibe
    members: /^(?:CURRENT|meta\.json|(?:chunks|journal)\/[^/]+\.jsonl?)$/,
    marker: /^CURRENT$/,
  },
  { // Mistral Vibe before 3.0
    members: /^(?:meta\.json|messages\.jsonl)$/,
    marker: /^messages\.jsonl$/,
  },
  { // Kimi Code, where a session has sub-agents
    members: /^agents\/[^/]+\/wire\.jsonl$/,
    marker: /^state\.json$/,
  },
  { // OpenHands
    members: /^(?:base_state\.json|events\/event-[0-9]{5,18}-[0-9a-fA-F-]{8,}\.json)$/,
    marker: /^base_state\.json$/,
  },
  { // gptme, where a conversation was compacted
    members: /^(?:conversation\.jsonl|views\/compacted-[0-9]+\.jsonl)$/,
    marker: /^conversation\.jsonl$/,
  },
];
const DATE = 33; // 1980-01-01 as MS-DOS writes it: the same folder gives the same bytes
const MADE_BY = 0x0314; // Unix, version 2.0 of the format, as Python's zipfile says
const ACCESS = 0o600 * 0x10000; // readable by its owner, as Python's zipfile says

// Files with their paths: those of no such folder as they are, and one for each folder.
export function bundled(files) {
  const all = files.map((item) => ({ item, path: item.path || item.file.name, ...parted(item.path || item.file.name) }));
  const byFolder = new Map();
  for (const each of all) for (const folder of above(each.path)) {
    if (!byFolder.has(folder)) byFolder.set(folder, []);
    byFolder.get(folder).push(each);
  }
  const held = new Set();
  const folders = new Map();
  const outerFirst = [...all].sort((a, b) => a.depth - b.depth || compare(a.path, b.path));
  for (const { item, folder, name } of outerFirst) for (const { members, marker } of KINDS) {
    if (held.has(item) || folders.has(folder) || !marker.test(name)) continue;
    const inside = byFolder.get(folder).filter(({ path }) => members.test(inner(path, folder)));
    if (inside.length < 2) continue;
    inside.sort((a, b) => compare(a.path, b.path));
    folders.set(folder, inside);
    for (const each of inside) held.add(each.item);
  }
  const whole = [...folders].map(([folder, inside]) => session(folder, inside));
  return [...files.filter((item) => !held.has(item)), ...whole];
}

// A session as a file to send, as in storage.js.
function session(folder, inside) {
  const name = `${folder.split("/").pop() || "session"}.zip`;
  const size = inside.reduce((sum, { item }) => sum + item.file.size, 0);
  return { file: { name, size }, path: folder, gather: (options) => gather(name, folder, inside, options) };
}

async function gather(name, folder, inside, { signal, read }) {
  const root = folder.split("/").pop();
  const entries = [];
  for (const { item, path } of inside) {
    signal.throwIfAborted();
    let bytes;
    try {
      bytes = new Uint8Array(await item.file.arrayBuffer());
    } catch {
      throw new Error(`the file ${inner(path, folder)} cannot be read`);
    }
    read(item.file.size);
    entries.push({ name: new TextEncoder().encode(root ? `${root}/${inner(path, folder)}` : path), bytes });
  }
  return new File(zip(entries), name);
}

// An archive of unpacked entries: each with its header, then the directory, then its end.
function zip(entries) {
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const { name, bytes } of entries) {
    const flags = name.every((byte) => byte < 128) ? 0 : 0x800; // the name is UTF-8
    const sizes = [[4, crc32(bytes)], [4, bytes.length], [4, bytes.length], [2, name.length], [2, 0]];
    const common = [[2, 20], [2, flags], [2, 0], [2, 0], [2, DATE], ...sizes];
    const header = numbers([[4, 0x04034b50], ...common]);
    parts.push(header, name, bytes);
    directory.push(numbers([[4, 0x02014b50], [2, MADE_BY], ...common, [2, 0], [2, 0], [2, 0], [4, ACCESS], [4, offset]]), name);
    offset += header.length + name.length + bytes.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const count = entries.length;
  const end = numbers([[4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, size], [4, offset], [2, 0]]);
  return [...parts, ...directory, end];
}

// Numbers of so many bytes, the lowest first.
function numbers(fields) {
  const bytes = new Uint8Array(fields.reduce((sum, [width]) => sum + width, 0));
  let at = 0;
  for (const [width, value] of fields) for (let index = 0; index < width; index += 1) bytes[at++] = Math.floor(value / 256 ** index) % 256;
  return bytes;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

function crc32(bytes) {
  let value = 0xffffffff;
  for (let index = 0; index < bytes.length; index += 1) value = TABLE[(value ^ bytes[index]) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

function parted(path) {
  const at = path.lastIndexOf("/");
  return { folder: at < 0 ? "" : path.slice(0, at), name: path.slice(at + 1), depth: path.split("/").length };
}

// The folder of a path and the one around it twice: what a session has lies no deeper.
function above(path) {
  const parts = path.split("/").slice(0, -1);
  return [0, 1, 2].filter((count) => count <= parts.length).map((count) => parts.slice(0, parts.length - count).join("/"));
}

function inner(path, folder) {
  return folder ? path.slice(folder.length + 1) : path;
}

function compare(a, b) {
  return a < b ? -1 : Number(a > b);
}
