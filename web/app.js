// The page: reads what the server offers, searches, shows results and what changes with fewer vectors.
import { get, onKeyNeeded, pageImage, post, postFile } from "./api.js";
import { showCollection } from "./collection.js";
import * as detail from "./detail.js";
import { $, bytes, count, el, percent, plural } from "./dom.js";
import { clearFilter, readFilter, showFields } from "./filters.js";
import { drawPage } from "./page_view.js";

const state = {
  stats: null, examples: [], uploaded: null, uploadIndex: 0, query: null, queryName: "",
  view: 0, hits: [], baselineHits: null, selected: -1, openId: null, run: 0, abort: null, tab: "search", thumbRun: 0,
};

// ---- messages

function showError(error, retry) {
  if (error.name === "AbortError") return;
  const banner = $("banner");
  banner.className = "banner";
  banner.replaceChildren(el("span", {}, error.message || String(error)),
    el("span", {}, retry ? el("button", { type: "button", onclick: () => { hideError(); retry(); } }, "Try again") : "", " ",
      el("button", { type: "button", "aria-label": "Dismiss", onclick: hideError }, "✕")));
  banner.hidden = false;
}

function hideError() { $("banner").hidden = true; }

onKeyNeeded((refused) => new Promise((resolve) => {
  $("key-error").hidden = !refused;
  $("key").value = "";
  $("key-dialog").showModal();
  $("key-dialog").oncancel = (event) => event.preventDefault();
  $("key-form").onsubmit = () => resolve($("key").value.trim());
}));

// ---- theme

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  detail.redraw();
  drawThumbs();
}
const preferred = window.matchMedia("(prefers-color-scheme: dark)");
setTheme(localStorage.getItem("marginmerge-theme") || (preferred.matches ? "dark" : "light"));
preferred.addEventListener("change", (event) => { if (!localStorage.getItem("marginmerge-theme")) setTheme(event.matches ? "dark" : "light"); });
$("theme").onclick = () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("marginmerge-theme", next);
  setTheme(next);
};

// ---- what the server offers

const views = () => state.stats?.views ?? [];  // nothing yet before the server has answered
const currentView = () => views()[state.view];
function baselineView() {
  const all = views();
  const full = all.find((v) => v.kind === "full");
  const best = full || all[all.length - 1];
  return best === currentView() ? null : best;
}
function labelOf(view) {
  if (view.kind === "full") return "Full pages";
  if (view.kind === "stored") return view.share > 0.999 ? "All vectors" : `${percent(view.share)} kept`;
  return `${view.name} kept`;
}

function showViews() {
  const all = views();
  $("budget").hidden = all.length < 2;
  $("share").max = String(all.length - 1);
  $("share").value = String(state.view);
  const view = currentView();
  $("share-now").textContent = `${labelOf(view)} · ${count(view.vectors)} vectors · ${bytes(view.vector_bytes)}`;
  $("share").setAttribute("aria-valuetext", labelOf(view));
  $("share-stops").replaceChildren(...all.map((v, i) => el(`span${i === state.view ? ".now" : ""}`, {}, v.kind === "full" ? "full" : v.kind === "stored" ? percent(v.share) : v.name)));
  const baseline = baselineView();
  $("side-switch").hidden = !baseline;
  if (baseline) $("baseline-name").textContent = labelOf(baseline).toLowerCase();
}

async function start() {
  hideError();
  try {
    state.stats = await get("v1/stats");
    const list = await get("v1/examples?limit=500");
    state.examples = list.examples;
  } catch (error) {
    showError(error, start);
    return;
  }
  const { stats } = state;
  $("index-name").textContent = `${stats.name} · ${plural(stats.pages, "page")}`;
  document.title = `${stats.name} · MarginMerge`;
  state.view = Math.max(0, stats.views.findIndex((v) => v.kind === "stored"));
  showViews();
  const textual = Boolean(stats.encoder);
  $("query").placeholder = textual ? "What are you looking for?" : state.examples.length ? "Choose an example query" : "Upload a query file to search";
  $("query-label").textContent = textual ? "Query text, or the name of an example" : "Example query";
  $("examples").replaceChildren(...state.examples.map((e) => el("option", { value: e.text || e.id }, e.text ? e.id : plural(e.tokens, "token"))));
  $("surprise").hidden = state.examples.length === 0;
  loadFields();
  readAddress();
}

async function loadFields() {
  try {
    for (let i = 0; i < 40; ++i) {
      const overview = await get("v1/overview");
      if (overview.ready) return showFields(overview.fields);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  } catch { /* filters by expression still work */ }
}

// ---- the address keeps query, view and open page, so that it can be shared

function writeAddress() {
  if (!state.stats) return;  // a click before the first answer must not overwrite what start() is about to read
  const p = new URLSearchParams();
  if (state.tab === "collection") p.set("tab", "collection");
  if (state.query?.example) p.set("example", state.query.example);
  if (state.query?.text) p.set("text", state.query.text);
  if (currentView() && currentView().kind !== "stored") p.set("view", currentView().name);
  if (state.openId) p.set("page", state.openId);
  if ($("side").checked) p.set("side", "1");
  const next = `#${p}`;
  if (location.hash !== next) history.replaceState(null, "", next);
}

function readAddress() {
  const p = new URLSearchParams(location.hash.slice(1));
  const view = views().findIndex((v) => v.name === p.get("view"));
  if (view >= 0) state.view = view;
  $("side").checked = p.get("side") === "1";
  showViews();
  const open = p.get("page");
  if (p.get("tab") === "collection") selectTab("collection");
  if (p.get("text")) setQuery({ text: p.get("text") }, p.get("text"));
  else if (p.get("example")) setQuery({ example: p.get("example") }, p.get("example"));
  else if (state.examples.length) setQuery({ example: state.examples[0].id }, state.examples[0].text || state.examples[0].id);
  else return showHits();
  search().then(() => { if (open) openPage(open); });
}

const narrow = () => window.matchMedia("(max-width: 1000px)").matches;

// ---- queries

function setQuery(query, name) {
  state.query = query;
  state.queryName = name;
  $("query").value = query.vectors ? "" : name;
}

/** What the box says: an example by id or text, otherwise text for the encoder. */
function queryFromBox() {
  const text = $("query").value.trim();
  if (!text) return null;
  const example = state.examples.find((e) => e.id === text || e.text === text);
  if (example) return { query: { example: example.id }, name: text };
  if (state.stats.encoder) return { query: { text }, name: text };
  throw new Error(state.examples.length ? `There is no example query “${text}”. Text needs an encoder: start the server with --encoder-url.`
    : "Text needs an encoder: start the server with --encoder-url, or use a query file.");
}

async function upload(file) {
  if (!file) return;
  hideError();
  try {
    if (file.size > state.stats.limits.body_bytes) throw new Error(`This file is larger than ${bytes(state.stats.limits.body_bytes)}.`);
    const decoded = await postFile("v1/encode", file);
    state.uploaded = { name: file.name, queries: decoded.queries };
    useUploaded(0);
  } catch (error) {
    showError(error);
  }
  $("upload").value = "";
}

function useUploaded(index) {
  const { name, queries } = state.uploaded;
  const q = queries[index];
  setQuery({ vectors: q.vectors }, `${name}: ${q.id}`);
  const bar = $("upload-bar");
  bar.replaceChildren(el("span", {}, `From ${name}`),
    queries.length > 1 ? el("label.inline", {}, "query ", el("select", { onchange: (e) => useUploaded(Number(e.target.value)) },
      ...queries.map((other, i) => el("option", { value: String(i), selected: i === index }, `${other.id} (${plural(other.tokens, "token")})`)))) : el("span.muted", {}, plural(q.tokens, "token")),
    el("button", { type: "button", onclick: () => { state.uploaded = null; bar.hidden = true; $("query").focus(); } }, "Remove"));
  bar.hidden = false;
  search();
}

// ---- searching

async function search() {
  if (!state.query) return showHits();
  const run = ++state.run;
  state.abort?.abort();
  state.abort = new AbortController();
  const k = Number($("k").value);
  const { filter, count: used } = readFilter();
  $("filter-count").textContent = used ? String(used) : "";
  const base = { ...state.query };
  if (filter) base.filter = filter;
  $("hits").classList.add("busy");
  const baseline = baselineView();
  try {
    const [now, before] = await Promise.all([
      post("v1/search", { ...base, k, view: currentView().name }, state.abort.signal),
      baseline ? post("v1/search", { ...base, k: Math.min(Math.max(100, k), state.stats.limits.k), view: baseline.name, metadata: $("side").checked }, state.abort.signal) : null,
    ]);
    if (run !== state.run) return;
    hideError();
    state.hits = now.hits;
    state.took = now.took_ms;
    state.baselineHits = before ? before.hits : null;
    state.baselineTook = before?.took_ms;
    showHits();
    writeAddress();
    if (state.openId && detail.isOpen()) openPage(state.openId);
    else if (!state.greeted && state.hits.length && !narrow() && !location.hash.includes("page=")) openPage(state.hits[0].id);
    state.greeted = true;
  } catch (error) {
    if (run !== state.run || error.name === "AbortError") return;
    state.hits = [];
    state.baselineHits = null;
    showHits(error);
    showError(error, search);
  } finally {
    if (run === state.run) $("hits").classList.remove("busy");
  }
}

function badge(rank, otherRank, depth) {
  if (otherRank === null) return null;
  if (otherRank === 0) return el("span.badge.new", { title: `not among the best ${depth} before` }, `was > ${depth}`);
  if (otherRank === rank) return el("span.badge", { title: "same place" }, "same");
  const up = otherRank > rank;
  return el(`span.badge.${up ? "up" : "down"}`, { title: `place ${otherRank} with ${labelOf(baselineView()).toLowerCase()}` }, `${up ? "▲" : "▼"} was ${otherRank}`);
}

function subtitle(hit) {
  const m = hit.metadata || {};
  const known = [m.source, m.page !== undefined ? `page ${m.page}` : null].filter(Boolean);
  if (known.length) return known.join(" · ");
  return Object.entries(m).filter(([n, v]) => !["title", "image", "text_file"].includes(n) && typeof v !== "object").slice(0, 3).map(([n, v]) => `${n} ${v}`).join(" · ");
}

// The bar compares the results shown with each other: full for the first, short for the last.
function hitItem(hit, index, shown, rankBefore, depth) {
  const top = shown[0].score, low = shown[shown.length - 1].score;
  const title = hit.metadata?.title || hit.id;
  const button = el(`button.hit${hit.id === state.openId ? ".open" : ""}`, { type: "button", "data-id": hit.id, "data-index": String(index), onclick: () => { state.selected = index; openPage(hit.id); } },
    el("span.rank", {}, String(hit.rank)),
    el("span.thumb", { "aria-hidden": "true" }, el("canvas", { "data-thumb": hit.id })),
    el("span", {}, el("span.title", {}, title), el("span.sub", {}, title === hit.id ? subtitle(hit) : [hit.id, subtitle(hit)].filter(Boolean).join(" · "))),
    el("span.scorebox", {}, el("span", {}, hit.score.toFixed(2)), el("span.scoreline", { "aria-hidden": "true" }, el("i", { style: `width:${top > low ? 8 + (92 * (hit.score - low)) / (top - low) : 100}%` })), badge(hit.rank, rankBefore, depth)));
  return el("li", {}, button);
}

function showHits(error) {
  const list = $("hits");
  $("list-title").textContent = state.queryName ? "Results" : "Welcome";
  $("took").textContent = state.hits.length ? `${state.took < 10 ? state.took.toFixed(1) : Math.round(state.took)} ms` : "";
  const before = state.baselineHits;
  const depth = before ? before.length : 0;
  const rankIn = (hits, id) => (hits.find((h) => h.id === id)?.rank) || 0;
  const k = Number($("k").value);
  if (!state.hits.length) {
    const none = error ? ["Nothing to show", "The search did not work; see the message above."]
      : !state.query ? ["Ask this index something", state.stats?.encoder ? "Type a query above." : "Use a query file: a .npy array or a .safetensors file with the vectors of a query."]
        : state.stats.pages === 0 ? ["This index is empty", "Add pages with POST /v1/pages or ‘marginmerge index add’."]
          : ["No page passes the filter", "Loosen or clear it to see results."];
    list.replaceChildren(el("li.empty", {}, el("strong", {}, none[0]), none[1]));
  } else {
    list.replaceChildren(...state.hits.map((h, i) => hitItem(h, i, state.hits, before ? rankIn(before, h.id) : null, depth)));
  }
  const side = $("side").checked && before;
  $("columns").classList.toggle("side", Boolean(side));
  $("baseline-column").hidden = !side;
  if (state.query && state.stats.views.length > 1) $("list-title").textContent = labelOf(currentView());
  if (side) {
    $("baseline-title").textContent = labelOf(baselineView());
    $("baseline-took").textContent = `${state.baselineTook < 10 ? state.baselineTook.toFixed(1) : Math.round(state.baselineTook)} ms`;
    const shown = before.slice(0, k);
    $("baseline-hits").replaceChildren(...shown.map((h, i) => hitItem(h, i, shown, null, 0)));
  }
  summarise(before, k, rankIn);
  drawThumbs();
}

function summarise(before, k, rankIn) {
  const out = $("change-summary");
  if (!before || !state.hits.length) {
    out.textContent = baselineView() ? "" : "This is the most this server has of each page. Move the slider to see what fewer vectors would answer.";
    return;
  }
  const shown = Math.min(k, state.hits.length);
  const kept = state.hits.filter((h) => { const r = rankIn(before, h.id); return r > 0 && r <= shown; }).length;
  const moved = state.hits.filter((h) => rankIn(before, h.id) !== h.rank).length;
  const name = labelOf(baselineView()).toLowerCase();
  out.textContent = shown === 1 ? `There is one result; it is ${moved ? "not " : ""}the first with ${name}, too.` : moved === 0 ? `The first ${shown} are the same pages in the same order as with ${name}.`
    : `${kept} of the first ${shown} are also there with ${name}; ${moved} ${moved === 1 ? "has" : "have"} another place.`;
}

// Small pictures: the page's image, or where on the page the score came from.
async function drawThumbs() {
  const run = ++state.thumbRun;
  if (!state.query || !state.stats) return;
  const canvases = [...document.querySelectorAll("canvas[data-thumb]")].slice(0, 40);
  const known = new Map();
  const work = async () => {
    for (let canvas = canvases.shift(); canvas && run === state.thumbRun; canvas = canvases.shift()) {
      const id = canvas.dataset.thumb;
      const inBaseline = canvas.closest("#baseline-hits");
      const view = inBaseline ? baselineView() : currentView();
      try {
        const key = `${view.name}\n${id}`;
        if (!known.has(key)) known.set(key, post("v1/explain", { ...state.query, id, view: view.name }));
        const [page, image] = await Promise.all([known.get(key), known.get(key).then((p) => (p.image ? pageImage(id) : null))]);
        if (run !== state.thumbRun || !canvas.isConnected) return;
        if (image) {
          canvas.replaceWith(el("img", { src: image.src, alt: "" }));
        } else {
          drawPage(canvas, page, { mode: "heat", token: null, width: 64, maxHeight: 64, tight: true });
        }
      } catch { /* a thumbnail is not worth a message */ }
    }
  };
  await Promise.all([work(), work(), work()]);
}

// ---- the open page

async function openPage(id) {
  state.openId = id;
  for (const b of document.querySelectorAll(".hit")) b.classList.toggle("open", b.dataset.id === id);
  const baseline = $("side").checked ? baselineView() : null;
  try {
    await detail.open(id, {
      query: state.query, view: { name: currentView().name, label: labelOf(currentView()) },
      baseline: baseline ? { name: baseline.name, label: labelOf(baseline) } : null, onClose: closePage,
    });
    writeAddress();
  } catch (error) {
    showError(error, () => openPage(id));
  }
}

function closePage() {
  const id = state.openId;
  state.openId = null;
  detail.close();
  for (const b of document.querySelectorAll(".hit.open")) {
    b.classList.remove("open");
    if (b.dataset.id === id) b.focus({ preventScroll: true });
  }
  writeAddress();
}

// ---- tabs and keys

function selectTab(name) {
  state.tab = name;
  for (const tab of ["search", "collection"]) {
    $(`tab-${tab}`).setAttribute("aria-selected", String(tab === name));
    $(`tab-${tab}`).tabIndex = tab === name ? 0 : -1;
    $(`panel-${tab}`).hidden = tab !== name;
  }
  if (name === "collection") {
    get("v1/stats").then((stats) => showCollection(stats, (id) => { selectTab("search"); openPage(id); })).catch((error) => showError(error, () => selectTab(name)));
  }
  writeAddress();
}
for (const tab of ["search", "collection"]) {
  $(`tab-${tab}`).onclick = () => selectTab(tab);
  $(`tab-${tab}`).onkeydown = (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = tab === "search" ? "collection" : "search";
    selectTab(other);
    $(`tab-${other}`).focus();
  };
}

$("search-form").onsubmit = (event) => {
  event.preventDefault();
  try {
    const next = queryFromBox();
    if (next) {
      state.uploaded = null;
      $("upload-bar").hidden = true;
      setQuery(next.query, next.name);
    }
    search();
  } catch (error) {
    showError(error);
  }
};
$("query").addEventListener("change", () => {
  if (state.examples.some((e) => e.id === $("query").value || e.text === $("query").value)) $("search-form").requestSubmit();
});
$("query").addEventListener("focus", () => { if (!state.stats?.encoder) $("query").select(); });
$("surprise").onclick = () => {
  const now = state.examples.findIndex((e) => e.id === state.query?.example);
  const next = state.examples[(now + 1) % state.examples.length];
  state.uploaded = null;
  $("upload-bar").hidden = true;
  setQuery({ example: next.id }, next.text || next.id);
  search();
};
$("upload").onchange = () => upload($("upload").files[0]);
$("k").onchange = search;
$("filter-toggle").onclick = () => {
  const open = $("filters").hidden;
  $("filters").hidden = !open;
  $("filter-toggle").setAttribute("aria-expanded", String(open));
};
$("filter-clear").onclick = () => { clearFilter(); search(); };
$("filter-fields").addEventListener("change", search);
$("share").oninput = () => { state.view = Number($("share").value); showViews(); search(); };
$("side").onchange = () => { search(); };
$("help").onclick = () => $("help-dialog").showModal();
window.addEventListener("resize", () => detail.redraw());

function moveSelection(step) {
  const buttons = [...$("hits").querySelectorAll(".hit")];
  if (!buttons.length) return;
  const focused = buttons.indexOf(document.activeElement);
  state.selected = Math.max(0, Math.min(buttons.length - 1, (focused >= 0 ? focused : state.selected) + step));
  buttons[state.selected].focus();
  if (detail.isOpen() && !narrow()) openPage(buttons[state.selected].dataset.id);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const typing = event.target.matches("input:not([type=checkbox]), select, textarea");
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    else if (detail.isOpen()) closePage();
    return;
  }
  if (typing || event.target.matches("[role=tab]")) return;
  const keys = {
    "/": () => { selectTab("search"); $("query").focus(); $("query").select(); },
    "?": () => $("help-dialog").showModal(),
    j: () => moveSelection(1), ArrowDown: () => moveSelection(1), k: () => moveSelection(-1), ArrowUp: () => moveSelection(-1),
    ArrowRight: () => detail.isOpen() && detail.stepToken(1), ArrowLeft: () => detail.isOpen() && detail.stepToken(-1),
    h: () => detail.isOpen() && detail.setMode("heat"), c: () => detail.isOpen() && detail.setMode("clusters"),
  };
  const act = keys[event.key];
  if (!act || state.tab !== "search" && event.key !== "/" && event.key !== "?") return;
  event.preventDefault();
  act();
});

start();
