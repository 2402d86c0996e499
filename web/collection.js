// The overview of the collection: what it costs, what was saved, and how redundant its pages are.
import { get } from "./api.js";
import { $, bytes, count, el, percent, plural } from "./dom.js";

function tile(value, label) { return el("div.tile", {}, el("b", {}, value), el("span", {}, label)); }

function histogram(values) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 420 170");
  svg.setAttribute("class", "chart");
  svg.setAttribute("role", "img");
  const add = (name, attributes, text) => {
    const node = document.createElementNS(ns, name);
    for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
    if (text !== undefined) node.textContent = text;
    svg.append(node);
    return node;
  };
  const low = Math.min(...values), high = Math.max(...values);
  const bins = Math.max(1, Math.min(24, Math.ceil(Math.sqrt(values.length))));
  const span = Math.max(1e-9, high - low);
  const counts = new Array(bins).fill(0);
  for (const v of values) ++counts[Math.min(bins - 1, Math.floor(((v - low) / span) * bins))];
  const top = Math.max(...counts);
  svg.setAttribute("aria-label", `Redundancy of ${values.length} pages, from ${low.toFixed(1)} to ${high.toFixed(1)}`);
  counts.forEach((c, i) => {
    const bar = add("rect", { x: 8 + (i * 404) / bins + 1, width: 404 / bins - 2, y: 138 - (126 * c) / top, height: (126 * c) / top, rx: 2 });
    const title = document.createElementNS(ns, "title");
    title.textContent = `${(low + (span * i) / bins).toFixed(1)} to ${(low + (span * (i + 1)) / bins).toFixed(1)}: ${plural(c, "page")}`;
    bar.append(title);
  });
  add("line", { x1: 8, x2: 412, y1: 138.5, y2: 138.5 });
  add("text", { x: 8, y: 155 }, low.toFixed(1));
  add("text", { x: 412, y: 155, "text-anchor": "end" }, high.toFixed(1));
  add("text", { x: 210, y: 155, "text-anchor": "middle" }, "patches for each independent direction");
  return svg;
}

function storage(stats) {
  const full = stats.views.find((v) => v.kind === "full");
  const rows = stats.views.map((v) => [v.kind === "stored" ? "this index" : v.name, v.vector_bytes]);
  if (!full && stats.source_vectors > stats.vectors) rows.push(["before", stats.source_vectors * stats.dim * 2]);
  const top = Math.max(...rows.map((r) => r[1]), 1);
  return el("div.bars", {}, ...rows.map(([name, size]) => el("div.barline", {}, el("span", {}, name),
    el("div.track", {}, el("i", { style: `width:${(100 * size) / top}%` })), el("span", {}, bytes(size)))));
}

function pageTable(title, note, pages, open) {
  const body = el("tbody", {}, ...pages.map((p) => el("tr", {},
    el("td", {}, el("button", { type: "button", onclick: () => open(p.id) }, p.id)),
    el("td.num", {}, p.redundancy.toFixed(1)),
    el("td.num", {}, p.source_vectors > p.vectors ? `${count(p.vectors)} of ${count(p.source_vectors)}` : count(p.vectors)))));
  return el("div.card", {}, el("h2", {}, title), el("p.muted", {}, note),
    el("table.plain", {}, el("thead", {}, el("tr", {}, el("th", {}, "page"), el("th.num", {}, "redundancy"), el("th.num", {}, "vectors"))), body));
}

export async function showCollection(stats, open) {
  const panel = $("panel-collection");
  const kept = stats.source_vectors > 0 ? stats.vectors / stats.source_vectors : 1;
  const full = stats.views.find((v) => v.kind === "full");
  const before = full ? full.vector_bytes : stats.source_vectors * stats.dim * 2;
  const saved = before > 0 ? 1 - stats.vector_bytes / before : 0;
  const tiles = el("div.tiles", {},
    tile(count(stats.pages), stats.deleted ? `pages (${count(stats.deleted)} deleted, waiting to be compacted)` : "pages"),
    tile(count(stats.vectors), kept < 0.999 ? `vectors, ${percent(kept)} of ${count(stats.source_vectors)}` : `vectors, ${stats.dim} numbers each`),
    tile(bytes(stats.vector_bytes), `of vectors as ${stats.code}, ${stats.dim} dimensions`),
    tile(saved > 0.001 ? percent(saved) : "nothing", saved > 0.001 ? `of ${bytes(before)} saved` : "saved: these pages were not compressed"));
  panel.replaceChildren(tiles, el("div.cards", { id: "collection-cards" }, el("div.card", {}, el("h2", {}, "Looking at the pages…"))));
  let overview = await get("v1/overview");
  for (let i = 0; i < 40 && !overview.ready; ++i) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    overview = await get("v1/overview");
  }
  const cards = [el("div.card", {}, el("h2", {}, "Bytes"), el("p.muted", {}, "Vectors only; ids, owners and metadata add a little."), storage(stats))];
  if (overview.ready && overview.pages.length) {
    const r = overview.redundancy;
    const basis = overview.basis === "full" ? "Measured on the pages before compression." : kept < 0.999
      ? "Measured on the kept vectors: what compression has left. Serve with --full to see the pages as they were." : "Measured on the stored vectors.";
    cards.push(el("div.card", {}, el("h2", {}, "Redundancy"),
      el("p.muted", {}, `A page with ${r.median.toFixed(1)} (the median) has that many patches for every independent direction in its vectors; the higher, the more a page can shrink. ${basis}`),
      histogram(overview.pages.map((p) => p.redundancy))));
    const sorted = [...overview.pages].sort((a, b) => b.redundancy - a.redundancy);
    const sample = overview.sampled < stats.pages ? ` Of ${count(overview.sampled)} pages looked at.` : "";
    const some = Math.min(8, Math.ceil(sorted.length / 2));
    cards.push(pageTable("Most redundant pages", `They repeat themselves and shrink well.${sample}`, sorted.slice(0, some), open));
    cards.push(pageTable("Least redundant pages", `Every patch says something else; keep more of these.${sample}`, sorted.slice(-some).reverse(), open));
  } else {
    cards.push(el("div.card", {}, el("h2", {}, "No pages yet"), el("p.muted", {}, "Add some with POST /v1/pages or 'marginmerge index add'.")));
  }
  $("collection-cards").replaceChildren(...cards);
}
