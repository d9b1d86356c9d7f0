// A slider writes into the field that it belongs to, which is what is sent; what is typed there moves the slider.
const plain = (text) => Number(text.replaceAll(",", "").replace("%", "") || NaN);

document.addEventListener("input", (event) => {
  const { target } = event;
  if (target.matches("[data-slider]")) {
    const field = document.getElementById(target.dataset.slider);
    field.value = `${Number(Number(target.value).toPrecision(3))}${target.dataset.unit}`;
    return;
  }
  const slider = target.id && document.querySelector(`[data-slider="${CSS.escape(target.id)}"]`);
  if (slider && Number.isFinite(plain(target.value))) slider.value = plain(target.value);
});
