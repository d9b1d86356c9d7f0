// Says in words when a request of the page fails, instead of leaving the page as it was without a sign.
const UNREACHED = "The server cannot be reached. Is it still running?";
const BACK = "The server answers again. If the page does not show what you did last, do it again.";
const place = document.getElementById("errors");

function show(sentence) {
  const notice = document.createElement("div");
  notice.className = "notice notice-error";
  const text = document.createElement("span");
  text.textContent = sentence;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "btn btn-small";
  close.textContent = "Dismiss";
  close.addEventListener("click", () => notice.remove());
  notice.append(text, close);
  place.replaceChildren(notice);
}

function reason(xhr) {
  if (xhr.status === 404) return "That page or session no longer exists.";
  if (xhr.status === 403) return "The server refused this: reload the page and try again.";
  if (xhr.status === 413) return "The file is larger than the server accepts.";
  if (xhr.status === 507) return "The disk of the data folder is full: free some space and try again. Nothing was changed.";
  if (xhr.status === 503) return "The database is busy or cannot be reached: try again in a moment. Nothing was changed.";
  return `The server answered with an error (${xhr.status}). Nothing was changed on this page.`;
}

document.addEventListener("htmx:responseError", (event) => show(reason(event.detail.xhr)));
document.addEventListener("htmx:sendError", () => show(UNREACHED));
document.addEventListener("server:answers", () => {
  if (place.querySelector("span")?.textContent === UNREACHED) show(BACK);
});
document.addEventListener("htmx:timeout", () => show("The server did not answer in time."));
document.addEventListener("htmx:afterSwap", () => place.replaceChildren());
