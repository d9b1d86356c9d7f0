// Listens for hints that the import changed, and then asks for its status. Without a socket htmx asks every second.
const watched = document.querySelector("[data-watch]");
if (watched) {
  const path = watched.dataset.watch;
  const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/ws${path}`);
  socket.addEventListener("message", () => {
    const place = document.getElementById("import");
    if (place) window.htmx.trigger(place, "hint");
  });
}
