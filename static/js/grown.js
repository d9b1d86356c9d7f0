// What a session's page shows anew with each step: fetched, and put in the place of what is shown, without the page being
// loaded again. Fields stay, the folds that are open, and the focus (focus.js). "session:grows" says that it is about to
// happen.
const HEADERS = { "HX-Request": "true", "HX-Target": "grown" };
const OTHER = ["HX-Refresh", "HX-Redirect", "HX-Reswap"]; // headers of an answer in place of the page's parts
const SWAP = { swapStyle: "outerHTML", swapDelay: 0, settleDelay: 0 };
const FOLDS = "#overview details[open]";
const FAILED = 500; // the least status of an answer that is only an error
const UNANSWERED = 30_000; // milliseconds after which it counts as not answered; it takes seconds on a busy machine

// The server failed to answer: what is shown stays, and is asked for again.
export class ServerFailure extends Error {}

// null where the server has more to say than that: a replay that is under way, a login, a session that is gone. Rejected
// where `signal` ends it, where it is not answered, or where the server fails.
export async function grown(url, signal) {
  const ends = AbortSignal.any([signal, AbortSignal.timeout(UNANSWERED)]);
  const answer = await fetch(url, { headers: HEADERS, signal: ends });
  if (answer.status >= FAILED) throw new ServerFailure();
  const isOther = OTHER.some((name) => answer.headers.has(name));
  return answer.status === 200 && !answer.redirected && !isOther ? answer.text() : null;
}

// Whether the page shows all of it then; where it does not, values that the settings name as in use have become others.
export function show(target, html) {
  const { id, dataset } = target;
  const folds = [...document.querySelectorAll(FOLDS)].map((fold) => fold.className);
  document.dispatchEvent(new CustomEvent("session:grows"));
  htmx.swap(target, html, SWAP, { eventInfo: { target } });
  for (const fold of folds) for (const same of document.getElementsByClassName(fold)) same.open = true;
  return document.getElementById(id)?.dataset.inUse === dataset.inUse;
}
