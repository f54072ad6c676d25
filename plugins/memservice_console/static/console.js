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

// An answer is shown while it comes, with its evidence beside it.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.stream) return;
  event.preventDefault();
  const box = document.getElementById("answer");
  const text = document.getElementById("answer-text");
  const evidence = document.getElementById("answer-evidence");
  const button = form.querySelector("button");
  box.hidden = false;
  text.textContent = "…";
  evidence.replaceChildren();
  button.disabled = true;
  let begun = false;
  const show = (line) => {
    if (!line) return;
    const part = JSON.parse(line);
    if (!begun) text.textContent = "";
    begun = true;
    if (part.text) text.textContent += part.text;
    if (part.error) text.textContent += "\n" + part.error;
    if (part.evidence) evidence.innerHTML = part.evidence;
  };
  try {
    const answer = await fetch(form.dataset.stream, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (!answer.ok) { form.removeAttribute("data-stream"); form.submit(); return; }
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      const lines = (rest + (value || "")).split("\n");
      rest = done ? "" : lines.pop();
      lines.forEach(show);
      if (done) break;
    }
    if (!begun) text.textContent = "There is no answer.";
    improve(document);
  } catch (error) {
    text.textContent += "\nThe answer could not be loaded. Try again.";
  } finally {
    button.disabled = false;
  }
});

// A download shows how far it is. Without this script, the browser downloads it by itself.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.download) return;
  event.preventDefault();
  const box = document.getElementById("export-progress");
  const bar = box.querySelector("progress");
  const text = box.querySelector("span");
  const button = form.querySelector("button");
  box.hidden = false;
  bar.removeAttribute("value");
  text.textContent = "…";
  button.disabled = true;
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (!answer.ok) { form.removeAttribute("data-download"); form.submit(); return; }
    const total = Number(answer.headers.get("X-Memservice-Rows")) || 1;
    const parts = [];
    let lines = 0;
    bar.max = total;
    const reader = answer.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      for (const byte of value) if (byte === 10) lines += 1;
      bar.value = Math.min(lines, total);
      text.textContent = lines <= total ? `${lines} of ${total} rows (${Math.floor(100 * lines / total)} %)` : `All rows, ${lines - total} further lines`;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(parts, { type: "application/x-ndjson" }));
    link.download = form.dataset.download;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    bar.value = total;
    text.textContent = `Complete: ${lines} lines`;
  } catch (error) {
    text.textContent = "The download broke off. Try again.";
  } finally {
    button.disabled = false;
  }
});

// A refresh must not take away what the reader is at work on.
document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.detail.elt;
  if (!(part.getAttribute("hx-trigger") || "").startsWith("every")) return;
  if (document.hidden || part.contains(document.activeElement) || part.querySelector("input:checked, details[open]")) event.preventDefault();
});

document.addEventListener("htmx:afterSwap", () => improve(document));
improve(document);
