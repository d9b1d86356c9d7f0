// Notifications of the browser, for near misses, overflows and loops of running agents: wanted by a button, on pages that
// are open. They hold the title of the session and what has arisen, and no other text of a session.
const WANTED = "notify-findings"; // in this browser: notifications are wanted

export function offer(button, said) {
  if (!("Notification" in window)) return;
  const show = () => {
    button.textContent = wanted() ? "Do not notify" : "Notify me";
  };
  button.addEventListener("click", async () => {
    if (wanted()) localStorage.removeItem(WANTED);
    else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(WANTED, "1");
    else said("The browser does not allow notifications of this page.");
    show();
  });
  button.parentElement.hidden = false;
  show();
}

// One of the same key replaces the one before, so that several pages of a session show it once.
export function notify(key, title, words) {
  if (wanted()) new Notification(title, { body: words, tag: key });
}

export function wanted() {
  return "Notification" in window && Notification.permission === "granted" && localStorage.getItem(WANTED) === "1";
}
