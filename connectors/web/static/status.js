// Keeps the page as the monitor says it is. All words come from the API and are set
// as text, never as markup: channel ids are text of strangers.
"use strict";

const POLL_MS = 2000;
// A monitor that takes longer than this is as good as silent.
const PATIENCE_MS = 5000;
// Figures that need no look, as the template marks them too.
const NIL = new Set(["0", "\u2013"]);

const body = document.querySelector("tbody");
const blankRow = document.querySelector("#row").content.firstElementChild;
const silence = document.querySelector(".silence");
const rows = new Map([...body.rows].map((row) => [row.dataset.channel, row]));
let answeredAt = new Date();

// Only what differs is touched, so that a selection and a screen reader are left alone.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function fill(root, text) {
  for (const element of root.querySelectorAll("[data-text]")) {
    const words = text[element.dataset.text];
    setText(element, words);
    if (element.matches(".figure")) element.classList.toggle("nil", NIL.has(words));
  }
}

function rowOf(channel) {
  let row = rows.get(channel.id);
  if (!row) {
    row = blankRow.cloneNode(true);
    row.dataset.channel = channel.id;
    row.querySelector("a").href = channel.text.href;
    rows.set(channel.id, row);
  }
  row.dataset.verdict = channel.verdict;
  fill(row, channel.text);
  return row;
}

function showRows(channels) {
  const focused = document.activeElement;
  let place = body.firstElementChild;
  for (const channel of channels) {
    const row = rowOf(channel);
    if (row === place) place = place.nextElementSibling;
    else body.insertBefore(row, place);
  }
  while (place) {
    const gone = place;
    place = place.nextElementSibling;
    rows.delete(gone.dataset.channel);
    gone.remove();
  }
  // A row that is moved loses the focus on the way.
  if (focused !== document.activeElement) focused.focus({ preventScroll: true });
}

function show(fleet) {
  document.title = `${fleet.summary} · sds-monitor`;
  document.body.dataset.level = fleet.level;
  for (const part of document.querySelectorAll("header, .notes")) {
    fill(part, fleet.text);
  }
  showRows(fleet.channels);
}

async function ask() {
  const response = await fetch(document.body.dataset.source, {
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.json();
}

async function poll() {
  const fleet = await ask().catch(() => null);
  if (fleet) {
    answeredAt = new Date();
    setText(silence, "");
  } else {
    const since = answeredAt.toLocaleTimeString("en-GB");
    setText(silence, `No answer from the monitor since ${since}`);
  }
  document.body.toggleAttribute("data-silent", !fleet);
  // Before showing, so that a mistake in one answer does not end the polling.
  setTimeout(poll, POLL_MS);
  if (fleet) show(fleet);
}

setTimeout(poll, POLL_MS);
