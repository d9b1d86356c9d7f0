// A session whose agent still works: says how many steps are new, and follows them if that is wanted.
// It asks often while something happens and seldom when nothing does; a page in the background asks only
// where notifications are wanted.
// Where the session has grown lately, or grows before its eyes, and as long as it is followed, a socket says how many steps
// there are, so that a step is counted or shown within half a second of its arrival; a page in the background has none,
// unless notifications are wanted.
// Overview and steps then show in place what a new step changes (grown.js); other pages are loaded anew, every few seconds at
// most, and look as before then (staying.js). A page that is in use (a field, a dialog) stays as it is: it says what is new,
// and continues once it is left.
import { announceNowAndThen } from "./announcing.js";
import { grown, ServerFailure, show as showGrown } from "./grown.js";
import { notify, offer, wanted } from "./notifying.js";
import { forgetPlace, keepPlace, restorePlace } from "./staying.js";
import { isInUse } from "./unsent.js";

const SOON = 2000; // milliseconds between two questions
const LATE = 20000;
const PAUSE = 250; // milliseconds between two updates of a followed page
const BESIDE = 1000; // milliseconds between two questions for alerts and calls left, which the server looks for once a second
const LONGEST_PAUSE = 2000; // milliseconds between two updates of a followed page that come slowly
const STAY = 5000; // milliseconds for which a page stays that is loaded anew for new steps
const UNANSWERED = 10_000; // milliseconds after which a question counts as not answered
const PATIENCE = 30; // questions without an answer that differs, after which it asks seldom
const MISSED = 2; // questions in a row that found no server, after which the page says so
const GATEWAY = [502, 503, 504]; // statuses of a proxy whose server is away
const AWAY = "The server does not answer; trying again.";
const SHOWN = 3; // near misses, overflows and loops, the latest
const FOLLOW = "follow-session"; // in this tab: the address of the session that is followed
const REACHED = "followed-to"; // in this tab: the step that was the last one when the page was last taken on
const FAILED = "The server could not show the new steps; trying again.";
const FOLLOWING = "Following: new steps are shown as they come.";
const USED = ["focusin", "input"]; // events by which a page may come into use

const box = document.querySelector("[data-growth]");
if (box) begin(box);

function leftWords(left) {
  return left && `To the threshold of the agent's own rule: ${left}, if calls grow as the last ones did.`;
}

function alertWords({ name, sentence }) {
  return `${name[0].toUpperCase()}${name.slice(1)}: ${sentence}`;
}

function begin(box) {
  const words = box.querySelector("[data-growth-words]");
  const follow = box.querySelector("[data-growth-follow]");
  const show = box.querySelector("[data-growth-show]");
  const following = () => sessionStorage.getItem(FOLLOW) === box.dataset.growth;
  const at = new URL(location.href).searchParams.get("at");
  // A page that was followed to a step shows that one as the last, also where another has come since it was asked for.
  const isFollowed = box.dataset.last && following() && at === sessionStorage.getItem(REACHED);
  let known = Math.min(Number(box.dataset.steps), isFollowed ? Number(at) : Infinity);
  const first = known; // alerts of later steps are said: one may come later than the steps that it is of
  // A followed page is not brought up to date again sooner than that took: a slow machine would do nothing else.
  const paced = (milliseconds) => Math.min(Math.max(PAUSE, milliseconds), LONGEST_PAUSE);
  let pace = paced(performance.now());
  let quiet = 0;
  let timer = 0;
  let said = known;
  let socket = null;
  let isToListen = false; // a socket is wanted where the page is in sight
  let latest = { alerts: [], left: "" }; // what the last answer said beside the steps
  const notified = new Set();
  let missed = 0; // questions in a row that found no server
  let before = ""; // the words that AWAY replaces
  let looked = performance.now(); // on the monotonic clock: when it last began to ask or to show, or came
  let left = -Infinity; // when something last lost the focus: a click that did it is to arrive
  let heard = 0; // steps, from the socket
  let asked = -Infinity; // when it last asked
  let isLooking = false;
  let isToLook = false; // something came while it looked
  let isLeaving = false; // another page is on its way

  const newest = (steps) => {
    const url = new URL(location.href);
    if (box.dataset.last) url.searchParams.set("at", steps);
    return url;
  };
  // On the page of steps one follows from the last step only: who has stepped back is not taken away.
  const isAtEnd = () => !box.dataset.last || Number(document.getElementById("step")?.dataset.at ?? known) >= known;
  const go = (steps) => {
    sessionStorage.setItem(REACHED, steps);
    const url = newest(steps);
    if (url.href === location.href) location.reload();
    else location.assign(url);
  };
  // As long as the page is on its way, what is shown may still come into use: then it stays.
  const unlessUsed = (stop) => {
    const stay = () => {
      if (!isInUse(box)) return;
      forget();
      stop();
    };
    const forget = () => {
      for (const name of USED) document.removeEventListener(name, stay);
    };
    for (const name of USED) document.addEventListener(name, stay);
    return forget;
  };
  const load = (steps) => {
    isLeaving = true;
    keepPlace();
    go(steps);
    unlessUsed(() => {
      isLeaving = false;
      forgetPlace();
      window.stop();
      plan(SOON);
    });
  };
  // What a new step changes takes the place of what is shown, where the page can do that.
  const part = () => box.dataset.part && document.getElementById(box.dataset.part);
  const hasToStay = () => !box.dataset.part && performance.now() < STAY;
  const failed = (error) => {
    if (error instanceof ServerFailure) say(FAILED);
    throw error;
  };
  const take = async (steps) => {
    const target = part();
    if (!target) return load(steps);
    const url = newest(steps);
    const here = location.href;
    const table = document.querySelector("#table [name=table]"); // is open
    const address = new URL(url);
    if (table) address.searchParams.set("table", table.value);
    const begun = performance.now();
    const leaving = new AbortController();
    const forget = unlessUsed(() => leaving.abort());
    const html = await grown(address, leaving.signal).catch(failed).finally(forget);
    if (html === null) return load(steps);
    if (!mayGo() || location.href !== here || !target.isConnected) return;
    history.replaceState(history.state, "", url);
    sessionStorage.setItem(REACHED, steps);
    const isWhole = showGrown(target, html);
    const count = Number(document.querySelector("[data-strip]")?.dataset.count ?? steps);
    known = box.dataset.last ? steps : Math.max(steps, count);
    said = Math.max(said, known);
    box.dataset.steps = known;
    if (!show.hidden || words.textContent === FAILED) say(FOLLOWING);
    show.hidden = true;
    pace = paced(performance.now() - begun);
    if (!isWhole) return load(known);
    const number = known.toLocaleString("en");
    announceNowAndThen(box.dataset.last ? `step ${number}` : `${number} steps`);
  };
  // A page without steps has nothing to stay for: it shows the first one that comes by itself.
  const mayFollow = () => (following() || known === 0) && isAtEnd() && performance.now() > left + PAUSE && !isInUse(box);
  const mayGo = () => mayFollow() && !hasToStay();

  const isResting = () => document.hidden && !wanted();
  const listen = () => {
    isToListen = true;
    if (socket || isResting()) return;
    const path = box.dataset.growth.replace(/^\/s\//, "/ws/sessions/").replace(/growth$/, "");
    socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}${path}`);
    socket.addEventListener("message", ({ data }) => {
      heard = JSON.parse(data).steps;
      if (heard <= said || (hasToStay() && mayFollow())) return;
      plan(Math.max(0, looked + (mayFollow() ? pace : BESIDE) - performance.now()));
      if (!mayFollow()) sayMore(heard);
    });
    socket.addEventListener("close", ({ target }) => {
      if (target !== socket) return; // closed by the page
      socket = null;
      isToListen = false;
    });
  };
  const rest = () => {
    const open = socket;
    socket = null;
    open?.close();
  };

  const say = (...sentences) => {
    const text = sentences.filter(Boolean).join(" ");
    if (words.textContent === text) return;
    words.textContent = text;
    if (text) announceNowAndThen(text);
  };
  const sayMore = (steps) => {
    const more = steps - known;
    const count = more === 1 ? "1 new step." : `${more.toLocaleString("en")} new steps.`;
    say(count, leftWords(latest.left), ...latest.alerts.slice(0, SHOWN).map(alertWords));
    show.href = newest(steps).href;
    show.hidden = box.hidden = false;
  };
  const alarm = (alerts) => {
    for (const { key, name, step } of alerts.filter((alert) => !notified.has(alert.key))) {
      notified.add(key);
      notify(key, box.dataset.title, `${name}, step ${step.toLocaleString("en")}`);
    }
  };

  const reached = (isThere) => {
    if (isThere) document.dispatchEvent(new CustomEvent("server:answers"));
    missed = isThere ? 0 : missed + 1;
    if (missed === MISSED) {
      before = words.textContent;
      say(AWAY);
    } else if (!missed && words.textContent === AWAY) say(before);
  };

  const plan = (milliseconds) => {
    clearTimeout(timer);
    timer = setTimeout(look, milliseconds);
  };
  const look = async () => {
    clearTimeout(timer);
    isToLook = isLooking;
    if (isLooking || isLeaving || isResting()) return;
    isLooking = true;
    looked = performance.now();
    try {
      const isShown = heard > known && mayGo();
      if (isShown) {
        said = Math.max(said, heard);
        quiet = 0;
        await take(said);
      }
      if (!isLeaving && (!isShown || performance.now() > asked + SOON)) await ask(); // for alerts, once the step is shown
    } catch {
      quiet += 1; // an answer that is none of a session, such as that of a login; a page that came into use
    } finally {
      isLooking = false;
    }
    if (hasToStay() && Math.max(said, heard) > known && mayFollow()) plan(STAY - performance.now());
    else plan(isToLook ? Math.max(0, looked + pace - performance.now()) : quiet < PATIENCE ? SOON : LATE);
    isToLook = false;
  };
  const ask = async () => {
    asked = performance.now();
    const signal = AbortSignal.timeout(UNANSWERED);
    const question = fetch(`${box.dataset.growth}?known=${first}`, { headers: { Accept: "application/json" }, signal });
    const answer = await question.catch(() => null);
    reached(answer !== null && !GATEWAY.includes(answer.status));
    const { steps, ...beside } = answer?.ok ? await answer.json() : { steps: said };
    quiet = steps > said ? 0 : quiet + 1;
    if (steps > said) {
      said = steps;
      listen();
    }
    if (answer?.ok) {
      latest = beside;
      alarm(latest.alerts);
    }
    const isTaken = said > known && mayGo();
    if (isTaken) await take(said);
    if (!answer?.ok) return;
    if (steps > known && !isTaken && !mayFollow()) sayMore(Math.max(steps, heard));
    if (following() && isAtEnd() && said === known) say(FOLLOWING, ...latest.alerts.slice(0, SHOWN).map(alertWords));
  };

  offer(box.querySelector("[data-notify]"), say);
  show.addEventListener("click", (event) => {
    event.preventDefault();
    go(Math.max(said, heard));
  });
  follow.addEventListener("change", () => {
    if (follow.checked) sessionStorage.setItem(FOLLOW, box.dataset.growth);
    else sessionStorage.removeItem(FOLLOW);
    if (follow.checked) listen();
    if (follow.checked && !isAtEnd()) go(Math.max(said, heard));
    else if (follow.checked) look();
    else if (said === known) words.textContent = "";
  });
  // The box is ticked where the page follows, and nowhere else.
  const mark = () => {
    follow.checked = following() && isAtEnd();
    if (!follow.checked && words.textContent === FOLLOWING) words.textContent = "";
  };
  for (const name of ["step:shown", "htmx:historyRestore"]) document.addEventListener(name, mark);
  const goOn = () => {
    left = performance.now();
    if (said === known || (known > 0 && !following())) return;
    plan(SOON);
  };
  document.addEventListener("focusout", goOn);
  document.addEventListener("close", goOn, true); // of a dialog; does not bubble
  document.addEventListener("visibilitychange", () => {
    if (isResting()) return rest();
    if (isToListen) listen();
    if (!document.hidden) look();
  });
  restorePlace();
  if (following()) {
    words.textContent = FOLLOWING;
    mark();
    show.hidden = true;
    box.hidden = false;
  }
  if (following() || "growing" in box.dataset) listen();
  plan(SOON);
}
