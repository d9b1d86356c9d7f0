// The light/dark switch: remembered in a cookie that the server reads, so that no page flashes.
const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");

function current() {
  return root.dataset.theme ?? (dark.matches ? "dark" : "light");
}

// The system may have chosen a theme, of which the server does not know.
function say() {
  for (const button of document.querySelectorAll("[data-theme-toggle]")) button.setAttribute("aria-pressed", current() === "dark");
}

function changed() {
  say();
  document.dispatchEvent(new CustomEvent("themechange", { detail: current() }));
}

function choose(theme) {
  root.dataset.theme = theme;
  document.cookie = `theme=${theme}; path=/; max-age=31536000; samesite=lax`;
  changed();
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-theme-toggle]")) choose(current() === "dark" ? "light" : "dark");
});

dark.addEventListener("change", () => {
  if (!root.dataset.theme) changed();
});
matchMedia("(forced-colors: active)").addEventListener("change", changed);
say();
