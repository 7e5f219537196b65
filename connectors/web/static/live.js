// Requests the open page again and again, and applies the differences. The server writes
// and escapes all words.
"use strict";

// A monitor that takes longer than this counts as silent.
const PATIENCE_MS = 10000;
// Number of answers with the cheap parts only, before one with the whole page.
const LIGHT_ANSWERS = 14;

const silence = document.querySelector(".silence");
let { version } = document.body.dataset;
let answeredAt = new Date();
let questions = 0;
let polls = 0;

// The reason that the monitor gives when it cannot answer.
class Failure extends Error {}

async function ask(light) {
  const url = new URL(location.href);
  if (light) {
    const [name, value] = light.split("=");
    url.searchParams.set(name, value);
  }
  const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) });
  if (response.status >= 500) {
    throw new Failure(`The monitor answers with an error (${response.status})`);
  }
  // A refusal is a page too; what comes from elsewhere is no answer.
  if (!response.headers.get("content-type")?.startsWith("text/html")) throw response;
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

async function refresh(light = "") {
  const question = ++questions;
  let fresh = null;
  let trouble = "";
  try {
    fresh = await ask(light);
  } catch (error) {
    trouble = error instanceof Failure ? error.message : "No answer from the monitor";
  }
  // Another question has been asked meanwhile, for another page.
  if (question !== questions) return;
  if (fresh) {
    answeredAt = new Date();
    silence.textContent = "";
    show(fresh);
  } else {
    const since = answeredAt.toLocaleTimeString("en-GB");
    silence.textContent = `${trouble} since ${since}`;
  }
  document.body.toggleAttribute("data-silent", !fresh);
}

function show(fresh) {
  // While it starts, the monitor may not say.
  const newVersion = fresh.body.dataset.version;
  if (version && newVersion && newVersion !== version) {
    // This script may not understand the new pages.
    location.reload();
    return;
  }
  version ||= newVersion;
  document.title = fresh.title;
  Object.assign(document.body.dataset, fresh.body.dataset);
  const main = document.querySelector("main");
  const freshMain = fresh.querySelector("main");
  // A monitor that starts knows no figures yet: the last ones stay.
  const unread = "unread" in freshMain.dataset && !("unread" in main.dataset);
  document.body.toggleAttribute("data-old", unread);
  takeOver(document.querySelector("header"), fresh.querySelector("header"));
  if (unread) return;
  takeOver(main, freshMain);
  takeOver(document.querySelector("footer"), fresh.querySelector("footer"));
  offerCopies();
}

// Only what differs is touched, so that focus, a selection and a screen reader are left
// alone. `data-own` marks what belongs to the open page, `data-kept` what was not asked
// for this time.
function takeOver(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  if ("own" in old.dataset || "kept" in fresh.dataset) return;
  takeOverAttributes(old, fresh);
  const keyed = new Map();
  for (const child of old.children) {
    if (child.dataset.key !== undefined) keyed.set(child.dataset.key, child);
  }
  let place = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = wanted.dataset?.key;
    const found = key === undefined ? place : keyed.get(key);
    if (!found || !isSameKind(found, wanted)) {
      old.insertBefore(document.adoptNode(wanted), place);
      continue;
    }
    if (found === place) place = place.nextSibling;
    else move(found, place);
    takeOver(found, wanted);
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

function isSameKind(one, other) {
  return one.nodeName === other.nodeName && one.dataset?.key === other.dataset?.key;
}

function takeOverAttributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    // Opening is the reader's.
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

// A moved element loses the focus.
function move(element, place) {
  const focused = document.activeElement;
  element.parentNode.insertBefore(element, place);
  if (focused !== document.activeElement) focused.focus({ preventScroll: true });
}

// The values of a form become the address of the page, without a reload.
function choose(form, button) {
  const chosen = [...new FormData(form, button)].filter(([, value]) => value);
  if (!button && chosen.every(([name]) => name !== "sort")) {
    const sort = new URL(location.href).searchParams.get("sort");
    if (sort) chosen.push(["sort", sort]);
  }
  history.replaceState(null, "", `?${new URLSearchParams(chosen)}`);
  refresh();
}

document.addEventListener("submit", (event) => {
  event.preventDefault();
  choose(event.target, event.submitter);
});
document.addEventListener("input", (event) => {
  if (event.target.form?.dataset.live !== undefined) choose(event.target.form);
});
document.addEventListener("click", (event) => {
  if (!event.target.matches(".copy")) return;
  const button = event.target;
  navigator.clipboard.writeText(JSON.parse(button.dataset.text)).then(() => {
    button.textContent = "Copied";
    button.ariaLabel = button.ariaLabel.replace("Copy", "Copied");
  });
});

// Only where the browser lets a page write to the clipboard.
function offerCopies() {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll(".copy[hidden]")) button.hidden = false;
}

async function poll() {
  const { light } = document.body.dataset;
  const whole = polls++ % (LIGHT_ANSWERS + 1) === LIGHT_ANSWERS;
  try {
    await refresh(whole ? "" : light);
  } finally {
    // A mistake in one answer does not end the polling.
    setTimeout(poll, document.body.dataset.pollS * 1000);
  }
}

offerCopies();
setTimeout(poll, document.body.dataset.pollS * 1000);
