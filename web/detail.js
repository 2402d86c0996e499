// The open result: why a page matched, drawn on the page itself.
import { pageImage, pageText, post, get } from "./api.js";
import { $, count, el, percent, plural } from "./dom.js";
import { drawLegend, drawPage, patchAt } from "./page_view.js";

const state = { mode: "heat", token: null, two: false, panes: [], id: null, hover: -1 };

export const isOpen = () => state.id !== null;

export function close() {
  state.id = null;
  state.panes = [];
  $("detail").hidden = true;
  $("split").classList.remove("open");
  document.body.classList.remove("sheet-open");
}

export function redraw() {
  for (const pane of state.panes) {
    pane.drawn = drawPage(pane.canvas, pane.page, { mode: state.mode, token: state.token, image: state.image, hover: pane === state.hoverPane ? state.hover : -1, maxHeight: Math.max(260, Math.min(560, window.innerHeight - 390)) });
  }
}

function nameOf(token, index) { return token.text || `token ${index + 1}`; }

function sentence() {
  const page = state.panes[0].page;
  if (state.hover >= 0 && state.hoverPane) {
    const shown = state.hoverPane.page;
    const patches = shown.owner.filter((o) => o === state.hover).length;
    const tokens = (shown.tokens || []).map((t, i) => [t, i]).filter(([t]) => t.representative === state.hover).map(([t, i]) => nameOf(t, i));
    const answered = tokens.length ? ` It answered ${tokens.slice(0, 8).join(", ")}${tokens.length > 8 ? " and more" : ""}.` : shown.tokens ? " It answered no token of this query." : "";
    return `Representative ${state.hover + 1} stands for ${plural(patches, "patch", "patches")}.${answered}`;
  }
  if (!page.tokens || state.mode === "clusters") return "Each colour is one representative and the patches it stands for. Point at the page to see how many.";
  if (state.token === null) {
    const used = new Set(page.tokens.map((t) => t.representative)).size;
    return `${plural(page.tokens.length, "query token")} found their best match among ${plural(page.vectors, "representative")}; ${used} of them answered. Bright patches gave most of the score ${page.score.toFixed(2)}. Choose a token to see its answer alone.`;
  }
  const t = page.tokens[state.token];
  if (t.representative < 0) return "This page has no vectors.";
  return `${nameOf(t, state.token)[0].toUpperCase()}${nameOf(t, state.token).slice(1)} was answered by representative ${t.representative + 1} with ${t.score.toFixed(3)}: it stands for ${plural(t.patches.length, "patch", "patches")} of ${count(page.source_vectors)}, outlined in white. Brighter patches are closer to this token.`;
}

function update() {
  for (const button of $("detail").querySelectorAll("[data-mode]")) button.setAttribute("aria-pressed", String(button.dataset.mode === state.mode));
  for (const button of $("detail").querySelectorAll("[data-token]")) {
    button.setAttribute("aria-pressed", String(button.dataset.token === String(state.token)));
  }
  const says = $("detail").querySelector(".says");
  if (says) says.textContent = sentence();
  const legend = $("detail").querySelector(".legend");
  if (legend) legend.hidden = state.mode !== "heat";
  redraw();
}

export function setMode(mode) { state.mode = mode; update(); }

export function stepToken(step) {
  const tokens = state.panes[0]?.page.tokens;
  if (!tokens) return;
  const now = state.token === null ? (step > 0 ? -1 : tokens.length) : state.token;
  const next = now + step;
  state.token = next < 0 || next >= tokens.length ? null : next;
  if (state.mode === "plain") state.mode = "heat";
  update();
  $("detail").querySelector(`[data-token="${state.token}"]`)?.scrollIntoView({ block: "nearest" });
}

function figure(page, caption) {
  const canvas = el("canvas", { role: "img", "aria-label": `Page ${page.id}, ${caption}` });
  const pane = { canvas, page };
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    const patch = pane.drawn ? patchAt(pane.drawn, event.clientX - box.left, event.clientY - box.top) : -1;
    const next = patch >= 0 ? page.owner[patch] : -1;
    if (next !== state.hover || state.hoverPane !== pane) {
      state.hover = next;
      state.hoverPane = pane;
      update();
    }
  };
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  canvas.addEventListener("pointerleave", () => { state.hover = -1; update(); });
  state.panes.push(pane);
  return el("figure.page", {}, el("div.canvas-wrap", {}, canvas), el("figcaption", {}, caption));
}

function metaList(metadata) {
  const entries = Object.entries(metadata || {}).filter(([name]) => name !== "image" && name !== "text_file");
  if (!entries.length) return null;
  return el("dl.meta", {}, ...entries.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, typeof value === "object" ? JSON.stringify(value) : String(value))]));
}

function captionOf(page, label) {
  const kept = page.source_vectors > page.vectors ? `${plural(page.vectors, "representative")} for ${count(page.source_vectors)} patches (${percent(page.vectors / page.source_vectors)})` : plural(page.vectors, "vector");
  return `${label}: ${kept}${page.score === undefined ? "" : `, score ${page.score.toFixed(2)}`}`;
}

/**
 * Shows a page. query: what to explain, or null for its clusters alone; view and baseline: {name,label}
 * or null; onClose is called for the button.
 */
export async function open(id, { query, view, baseline, onClose }) {
  const panel = $("detail");
  if (state.id !== id) state.token = null;
  state.id = id;
  state.hover = -1;
  const wanted = [view, ...(baseline && query ? [baseline] : [])];
  const answers = query
    ? await Promise.all(wanted.map((v) => post("v1/explain", { ...query, id, view: v.name, similarities: true })))
    : [await get(`v1/pages/${encodeURIComponent(id)}`)];
  const [image, text] = await Promise.all([answers[0].image ? pageImage(id) : null, answers[0].text ? pageText(id) : null]);
  if (state.id !== id) return;
  state.image = image;
  if (!query) state.mode = "clusters";
  else if (!state.chosen) state.mode = "heat";
  state.panes = [];
  const page = answers[0];
  if (state.token !== null && !(page.tokens?.length > state.token)) state.token = null;
  const mode = (name, label) => el("button", { type: "button", "data-mode": name, onclick: () => { state.chosen = true; setMode(name); } }, label);
  const figures = answers.map((a, i) => figure(a, captionOf(a, query ? wanted[i].label : "Clusters")));
  const legend = el("canvas", { "aria-hidden": "true" });
  const title = page.metadata?.title || id;
  const best = Math.max(...(page.tokens || []).map((t) => t.score), 1e-9);
  const orphans = answers.some((a) => a.owner.includes(-1));
  const unknown = !page.boxes && !page.grid;
  panel.replaceChildren(
    el("div.detail-head", {}, el("div", {}, el("h2", {}, title), title === id ? null : el("p.muted.small", {}, id)),
      el("button.icon-button", { type: "button", id: "detail-close", "aria-label": "Close", onclick: onClose }, "✕")),
    el("div.detail-bar", {}, el("div.seg", { role: "group", "aria-label": "What to draw" }, query ? mode("heat", "Heat map") : null, mode("clusters", "Clusters"), mode("plain", image ? "Page" : "Plain"))),
    el(`div.body${figures.length > 1 ? ".two" : ""}`, {}, el("div", {}, el(`div.pages${figures.length > 1 ? ".two" : ""}`, {}, ...figures),
      query ? el("div.legend", {}, el("span", {}, "far from the query"), legend, el("span", {}, "close"), orphans ? el("i.none", {}) : "", orphans ? el("span", {}, "nobody stands for these now") : "") : ""),
    el("div", {}, el("p.says", { "aria-live": "polite" }),
    page.tokens ? el("div", {}, el("h3", {}, "Query tokens"), el("div.tokens", {},
      el("button.token", { type: "button", "data-token": "null", onclick: () => { state.token = null; update(); } }, el("span", {}, "all"), el("i", { style: "width:100%" }), el("em", {}, page.score.toFixed(2))),
      ...page.tokens.map((t, i) => el("button.token", { type: "button", "data-token": String(i), title: `representative ${t.representative + 1}`, onclick: () => { state.token = i; if (state.mode !== "heat") state.mode = "heat"; update(); } },
        el("span", {}, t.text || String(i + 1)), el("i", { style: `width:${Math.max(0, (100 * t.score) / best)}%` }), el("em", {}, t.score.toFixed(2)))))) : "")),
    text ? el("div.page-text", { tabIndex: 0 }, text) : "",
    metaList(page.metadata) || "",
    el("details.more", {}, el("summary", {}, "How to read this"), el("p.small.muted", {},
      `Every small square is one patch of the page, as the encoder saw it. ${unknown ? "This index does not say where the patches lie, so they are drawn in reading order. " : ""}After compression one representative stands for a group of patches (a cluster). For each token of the query the best representative answers; the sum of these answers is the page's score. Colours of clusters only tell neighbours apart.`)));
  if (query) drawLegend(legend);
  panel.hidden = false;
  $("split").classList.add("open");
  if (window.matchMedia("(max-width: 1000px)").matches) document.body.classList.add("sheet-open");
  update();
}
