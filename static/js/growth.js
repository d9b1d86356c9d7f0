// A session whose agent still works: says how many steps are new, and follows them if that is wanted.
// It asks often while something happens and seldom when nothing does; a page in the background asks only
// where notifications are wanted.
// Once the session has grown, and as long as it is followed, a socket says when to ask, so that a step is shown
// within half a second of its arrival where the page comes that quickly. A page that is in use (a field, a dialog) is not taken away: it says what is new, and continues
// once it is left.
import { notify, offer, wanted } from "./notifying.js";
import { isInUse } from "./unsent.js";

const SOON = 2000; // milliseconds between two questions
const LATE = 20000;
const PAUSE = 250; // milliseconds between two questions that the socket asks for
const LONGEST_PAUSE = 2000; // milliseconds between two loads of a followed page that comes slowly
const PATIENCE = 30; // questions without an answer that differs, after which it asks seldom
const MISSED = 2; // questions in a row that found no server, after which the page says so
const GATEWAY = [502, 503, 504]; // statuses of a proxy whose server is away
const AWAY = "The server does not answer; trying again.";
const SHOWN = 3; // near misses, overflows and loops, the latest
const FOLLOW = "follow-session"; // in this tab: the address of the session that is followed
const REACHED = "followed-to"; // in this tab: the step that was the last one when the page was last taken on
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
  const known = Math.min(Number(box.dataset.steps), isFollowed ? Number(at) : Infinity);
  // A followed page is not loaded again sooner than it took to come: a slow machine would do nothing else.
  const slow = Math.min(Math.max(PAUSE, performance.now()), LONGEST_PAUSE);
  let quiet = 0;
  let timer = 0;
  let said = known;
  let socket = null;
  const notified = new Set();
  let missed = 0; // questions in a row that found no server
  let before = ""; // the words that AWAY stands in place of
  let looked = Date.now(); // when it last asked, or came
  let left = 0; // when something last lost the focus: a click that did it is to arrive

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
  // As long as the new page has not come, this one may still come into use: then it stays.
  const take = (steps) => {
    go(steps);
    const stay = () => {
      if (!isInUse(box)) return;
      window.stop();
      for (const name of USED) document.removeEventListener(name, stay);
      clearTimeout(timer);
      timer = setTimeout(look, SOON);
    };
    for (const name of USED) document.addEventListener(name, stay);
  };
  const mayGo = () => following() && isAtEnd() && Date.now() > left + PAUSE && !isInUse(box);

  const listen = () => {
    if (socket) return;
    const path = box.dataset.growth.replace(/^\/s\//, "/ws/sessions/").replace(/growth$/, "");
    socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}${path}`);
    socket.addEventListener("message", () => {
      clearTimeout(timer);
      timer = setTimeout(look, Math.max(0, looked + (following() ? slow : PAUSE) - Date.now()));
    });
    socket.addEventListener("close", () => (socket = null));
  };

  const say = (steps, alerts, left) => {
    const more = steps - known;
    const count = more === 1 ? "1 new step." : `${more.toLocaleString("en")} new steps.`;
    const text = [count, leftWords(left), ...alerts.slice(0, SHOWN).map(alertWords)].filter(Boolean).join(" ");
    if (words.textContent !== text) words.textContent = text;
    show.href = newest(steps).href;
    show.hidden = box.hidden = false;
    for (const { key, name, step } of alerts.filter((alert) => !notified.has(alert.key))) {
      notified.add(key);
      notify(key, box.dataset.title, `${name}, step ${step.toLocaleString("en")}`);
    }
  };

  const reached = (isThere) => {
    missed = isThere ? 0 : missed + 1;
    if (missed === MISSED) {
      before = words.textContent;
      words.textContent = AWAY;
    } else if (!missed && words.textContent === AWAY) words.textContent = before;
  };

  const look = async () => {
    clearTimeout(timer);
    if (document.hidden && !wanted()) return;
    looked = Date.now();
    try {
      const question = fetch(`${box.dataset.growth}?known=${known}`, { headers: { Accept: "application/json" } });
      const answer = await question.catch(() => null);
      reached(answer !== null && !GATEWAY.includes(answer.status));
      const { steps, alerts, left } = answer?.ok ? await answer.json() : { steps: said };
      quiet = steps > said ? 0 : quiet + 1;
      if (answer?.ok && steps > known) say(steps, alerts, left); // alerts come later than the steps that they are of
      if (steps > said) {
        said = steps;
        listen();
      }
      if (said > known && mayGo()) return take(said);
    } catch {
      quiet += 1; // an answer that is none of a session, such as that of a login
    }
    timer = setTimeout(look, quiet < PATIENCE ? SOON : LATE);
  };

  offer(box.querySelector("[data-notify]"), (sentence) => (words.textContent = sentence));
  show.addEventListener("click", (event) => {
    event.preventDefault();
    go(said);
  });
  follow.addEventListener("change", () => {
    if (follow.checked) sessionStorage.setItem(FOLLOW, box.dataset.growth);
    else sessionStorage.removeItem(FOLLOW);
    if (follow.checked && !isAtEnd()) go(said);
    else if (said > known && mayGo()) go(said);
  });
  // The box is ticked where the page follows, and nowhere else.
  const mark = () => {
    follow.checked = following() && isAtEnd();
    if (!follow.checked && words.textContent === FOLLOWING) words.textContent = "";
  };
  for (const name of ["step:shown", "htmx:historyRestore"]) document.addEventListener(name, mark);
  const goOn = () => {
    left = Date.now();
    if (said === known || !following()) return;
    clearTimeout(timer);
    timer = setTimeout(look, SOON);
  };
  document.addEventListener("focusout", goOn);
  document.addEventListener("close", goOn, true); // of a dialog; does not bubble
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) look();
  });
  if (following()) {
    words.textContent = FOLLOWING;
    mark();
    show.hidden = true;
    box.hidden = false;
    listen();
  }
  timer = setTimeout(look, SOON);
}
