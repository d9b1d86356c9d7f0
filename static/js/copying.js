// Buttons that copy the lines beside them; without the clipboard there is none.
for (const button of navigator.clipboard ? document.querySelectorAll("[data-copies]") : []) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const { textContent } = document.getElementById(button.dataset.copies);
    const done = await navigator.clipboard.writeText(textContent).then(() => true, () => false);
    document.getElementById("announce").textContent = button.textContent = done ? "Copied" : "Not copied";
  });
}
