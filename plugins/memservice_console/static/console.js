"use strict";

// What the pages do with JavaScript, on top of links and forms that work without it.

function improve(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (!time.title && !Number.isNaN(moment.getTime())) {
      time.title = time.textContent;
      time.textContent = moment.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    }
  }
  if (navigator.clipboard) {
    for (const button of root.querySelectorAll("button.copy[hidden]")) button.hidden = false;
  }
  for (const slider of root.querySelectorAll("input[data-mirrors]")) {
    const field = document.getElementById(slider.dataset.mirrors);
    slider.hidden = false;
    slider.addEventListener("input", () => { field.value = slider.value; });
    field.addEventListener("input", () => { slider.value = field.value; });
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  navigator.clipboard.writeText(button.dataset.copy).then(() => {
    const text = button.firstChild.textContent;
    button.firstChild.textContent = "Copied";
    setTimeout(() => { button.firstChild.textContent = text; }, 1500);
  });
});

// A refresh must not take away what the reader is at work on.
document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.detail.elt;
  if (!(part.getAttribute("hx-trigger") || "").startsWith("every")) return;
  if (document.hidden || part.contains(document.activeElement) || part.querySelector("input:checked, details[open]")) event.preventDefault();
});

document.addEventListener("htmx:afterSwap", () => improve(document));
improve(document);
