// Browser tests of the page in headless Chromium. Usage: node run.mjs BINARY SCRATCH [SCREENSHOTS]
// Needs playwright-core and /usr/bin/chromium; ends with "N passed, N failed".
import { spawn, spawnSync } from "node:child_process";
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { createRequire } from "node:module";
import { writeCorpus } from "./corpus.mjs";

const [binary, scratch, shots] = process.argv.slice(2);
const { chromium } = createRequire(path.join(scratch, "package.json"))("playwright-core");
const folder = path.join(scratch, "corpus");
fs.rmSync(folder, { recursive: true, force: true });
fs.mkdirSync(folder, { recursive: true });
if (shots) fs.mkdirSync(shots, { recursive: true });
const corpus = writeCorpus(folder);
const file = (name) => path.join(folder, name);

const made = spawnSync(binary, ["index", "add", file("index"), file("small.safetensors"), "--metadata", file("metadata.jsonl"), "--code", "f16", "--quiet"], { encoding: "utf8" });
assert.equal(made.status, 0, `index add: ${made.stderr}`);

// ---- servers

const running = new Set();
async function serve(more = [], env = {}, wanted = 0) {
  const child = spawn(binary, ["serve", file("index"), "--port", String(wanted), "--json", "--quiet", "--full", file("full.safetensors"), "--queries", file("queries.safetensors"), "--assets", file("assets"), ...more],
    { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  running.add(child);
  const line = await new Promise((resolve, reject) => {
    child.stdout.once("data", (data) => resolve(String(data)));
    child.once("exit", (code) => reject(new Error(`server ended with ${code}`)));
  });
  const { url, port } = JSON.parse(line);
  const stop = () => new Promise((resolve) => { running.delete(child); child.once("exit", resolve); child.kill("SIGTERM"); });
  return { url, port, stop };
}

/** A token-embedding server: answers "topic N" with vectors of that topic. */
let encoderWorks = true;
const encoder = http.createServer((request, response) => {
  let body = "";
  request.on("data", (part) => { body += part; });
  request.on("end", () => {
    if (!encoderWorks || request.url !== "/pooling") { response.writeHead(500); return response.end("{}"); }
    const topic = Number(JSON.parse(body).input[0].match(/\d+/)?.[0] || 0) % 8;
    response.end(JSON.stringify({ data: [{ index: 0, object: "pooling", data: [corpus.topics[topic], corpus.topics[topic]] }] }));
  });
});
await new Promise((resolve) => encoder.listen(0, "127.0.0.1", resolve));

// ---- a small runner

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
let passed = 0;
const failed = [];
const desktop = { viewport: { width: 1400, height: 900 } };
const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

/** Runs `body` on a fresh page; any script error or request to elsewhere is a failure, unless allowed. */
async function test(name, server, body, { options = desktop, address = "", allow = /^$/ } = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(20000);
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => { if (message.type() === "error" && !allow.test(message.text())) faults.push(message.text()); });
  page.on("request", (request) => { if (!request.url().startsWith(server.url) && !/^(blob|data):/.test(request.url())) faults.push(`request to ${request.url()}`); });
  try {
    await page.goto(server.url + address);
    await body(page, context);
    assert.deepEqual(faults, []);
    ++passed;
    console.log(`ok    ${name}`);
  } catch (error) {
    failed.push(name);
    console.log(`FAIL  ${name}: ${error.message}`);
    if (shots) await page.screenshot({ path: path.join(shots, `failed-${failed.length}.png`) }).catch(() => {});
  }
  await context.close();
}

const shot = async (page, name) => { if (shots) { await page.waitForTimeout(700); await page.screenshot({ path: path.join(shots, `${name}.png`) }); } };
const ids = (page, list = "#hits") => page.$$eval(`${list} .hit`, (all) => all.map((h) => h.dataset.id));
const settled = (page) => page.waitForFunction(() => document.querySelector("#hits .hit") && !document.querySelector("#hits.busy"));
const slide = async (page, to) => {
  await page.$eval("#share", (s, v) => { s.value = v; s.dispatchEvent(new Event("input")); }, to);
  await settled(page);
};
async function api(server, route, body) {
  const response = await fetch(server.url + route, body ? { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) } : {});
  return response.json();
}
const colours = (page, selector) => page.$eval(selector, (c) => new Set(new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer)).size);

// ---- the tests

const server = await serve();

await test("search by example shows ranked results and explains the first", server, async (page) => {
  await settled(page);
  const expected = (await api(server, "v1/search", { example: "question-0", k: 10 })).hits.map((h) => h.id);
  assert.deepEqual(await ids(page), expected);
  await page.waitForSelector(".detail .says");
  assert.match(await page.textContent(".says"), /6 query tokens/);
  await shot(page, "desktop");
  await page.click("#surprise");
  await page.waitForFunction(() => document.getElementById("query").value === "question-1");
  await settled(page);
  assert.deepEqual(await ids(page), (await api(server, "v1/search", { example: "question-1", k: 10 })).hits.map((h) => h.id));
  await page.selectOption("#k", "5");
  await page.waitForFunction(() => document.querySelectorAll("#hits .hit").length === 5);
});

await test("open a hit: heat map, tokens, clusters", server, async (page) => {
  await settled(page);
  await page.click("#hits li:nth-child(3) .hit");
  const id = (await ids(page))[2];
  await page.waitForFunction((t) => document.querySelector(".detail h2")?.textContent === t, `Report ${Number(id.slice(-2))}`);
  assert.ok(await colours(page, ".detail .canvas-wrap canvas") > 8, "the heat map has many colours");
  const explained = await api(server, "v1/explain", { example: "question-0", id });
  await page.click('[data-token="2"]');
  const says = await page.textContent(".says");
  assert.match(says, new RegExp(`representative ${explained.tokens[2].representative + 1} with ${explained.tokens[2].score.toFixed(3)}`));
  assert.match(says, new RegExp(`stands for ${explained.tokens[2].patches.length} patch`));
  await shot(page, "detail");
  await page.click('[data-mode="clusters"]');
  assert.equal(await page.getAttribute('[data-mode="clusters"]', "aria-pressed"), "true");
  assert.match(await page.textContent(".says"), /Each colour is one representative/);
  const box = await (await page.$(".detail .canvas-wrap canvas")).boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 20);
  await page.waitForFunction(() => /Representative \d+ stands for \d+ patch/.test(document.querySelector(".says").textContent));
  await shot(page, "clusters");
  await page.click("#detail-close");
  assert.ok(await page.isHidden("#detail"));
});

await test("move the slider: fewer vectors, changed ranks", server, async (page) => {
  await settled(page);
  const { views } = await api(server, "v1/stats");
  assert.equal(await page.getAttribute("#share", "max"), String(views.length - 1));
  const five = views.findIndex((v) => v.name === "5%");
  await slide(page, five);
  await page.waitForFunction(() => document.getElementById("list-title").textContent === "5% kept");
  const now = (await api(server, "v1/search", { example: "question-0", k: 10, view: "5%" })).hits;
  const before = (await api(server, "v1/search", { example: "question-0", k: 100, view: "full" })).hits;
  assert.deepEqual(await ids(page), now.map((h) => h.id));
  const badges = await page.$$eval("#hits .badge", (all) => all.map((b) => b.textContent));
  assert.deepEqual(badges.map((b) => (b === "same" ? 0 : Number(b.match(/\d+/)[0]))), now.map((h) => { const was = before.find((b) => b.id === h.id).rank; return was === h.rank ? 0 : was; }));
  assert.match(await page.textContent("#share-now"), /5% kept/);
  await page.focus("#share");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.getElementById("list-title").textContent === "10% kept");
  await slide(page, views.length - 1);
  await page.waitForFunction(() => document.getElementById("list-title").textContent === "Full pages");
  assert.ok(await page.isHidden("#side-switch"));
});

await test("side by side with the full pages", server, async (page) => {
  await settled(page);
  await page.check("#side");
  await page.waitForSelector("#baseline-hits .hit");
  assert.deepEqual(await ids(page, "#baseline-hits"), (await api(server, "v1/search", { example: "question-0", k: 10, view: "full" })).hits.map((h) => h.id));
  await page.waitForFunction(() => document.querySelectorAll(".detail .canvas-wrap canvas").length === 2);
  assert.match(await page.textContent(".detail figure:nth-child(2) figcaption"), /Full pages: 64 vectors/);
  await shot(page, "side-by-side");
});

await test("filter by fields and by expression, and say when nothing is left", server, async (page) => {
  await settled(page);
  await page.click("#filter-toggle");
  await page.waitForSelector('select[data-field="language"]');
  await page.selectOption('select[data-field="language"]', "de");
  await page.waitForFunction(() => document.getElementById("filter-count").textContent === "1");
  await settled(page);
  assert.ok((await ids(page)).every((id) => Number(id.slice(-2)) % 3 === 0));
  await page.fill('input[data-field="year"][data-end="gte"]', "2015");
  await page.fill("#filter-text", "source = volume-0.pdf");
  await page.click("#filters button[type=submit]");
  await page.waitForFunction(() => document.querySelectorAll("#hits .hit").length === 1);
  assert.deepEqual(await ids(page), ["report-15"]);
  await shot(page, "filter");
  await page.fill("#filter-text", "year > 9999");
  await page.click("#filters button[type=submit]");
  await page.waitForSelector("text=No page passes the filter");
  await page.click("#filter-clear");
  await page.waitForFunction(() => document.querySelectorAll("#hits .hit").length === 10);
});

await test("a wrong filter is explained, not swallowed", server, async (page) => {
  await settled(page);
  await page.click("#filter-toggle");
  await page.fill("#filter-text", "year >");
  await page.click("#filters button[type=submit]");
  await page.waitForSelector("#banner:not([hidden])");
  assert.ok((await page.textContent("#banner")).length > 10);
  await page.fill("#filter-text", "");
  await page.click("#banner >> text=Try again");
  await settled(page);
  assert.ok(await page.isHidden("#banner"));
}, { allow: /400/ });

await test("query files: npy, a batch, and garbage", server, async (page) => {
  await settled(page);
  await page.setInputFiles("#upload", file("query.npy"));
  await page.waitForSelector("#upload-bar:not([hidden])");
  await settled(page);
  assert.deepEqual(await ids(page), (await api(server, "v1/search", { example: "question-2", k: 10 })).hits.map((h) => h.id));
  await page.setInputFiles("#upload", file("queries.safetensors"));
  await page.waitForSelector("#upload-bar select");
  await page.selectOption("#upload-bar select", "4");
  await page.waitForFunction((first) => document.querySelector("#hits .hit")?.dataset.id === first, (await api(server, "v1/search", { example: "question-4" })).hits[0].id);
  await page.setInputFiles("#upload", file("broken.npy"));
  await page.waitForSelector("#banner:not([hidden])");
  assert.match(await page.textContent("#banner"), /safetensors|npy/);
}, { allow: /400/ });

await test("images and texts of pages are shown", server, async (page) => {
  await settled(page);
  await page.waitForSelector("#hits .thumb img");
  await page.evaluate(() => { location.hash = "#example=question-0&page=report-01"; location.reload(); });
  await page.waitForSelector(".page-text");
  assert.equal(await page.textContent(".page-text"), "The words of report 1.");
  await page.click('#hits .hit[data-id="report-06"]');
  await page.waitForFunction(() => document.querySelector(".detail h2")?.textContent === "Report 6");
  await page.click('[data-token="1"]');
  await shot(page, "image");
});

await test("everything works from the keyboard", server, async (page) => {
  await settled(page);
  await page.waitForSelector(".detail .says");
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "query");
  await page.keyboard.type("question-3");
  await page.keyboard.press("Enter");
  await page.waitForFunction((first) => document.querySelector("#hits .hit")?.dataset.id === first, (await api(server, "v1/search", { example: "question-3" })).hits[0].id);
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  const second = (await ids(page))[1];
  assert.equal(await page.evaluate(() => document.activeElement.dataset.id), second);
  await page.keyboard.press("Enter");
  await page.waitForSelector(`.hit.open[data-id="${second}"]`);
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector('[data-token="0"][aria-pressed="true"]');
  await page.keyboard.press("c");
  await page.waitForSelector('[data-mode="clusters"][aria-pressed="true"]');
  await page.keyboard.press("Escape");
  assert.ok(await page.isHidden("#detail"));
  await page.keyboard.press("?");
  await page.waitForSelector("#help-dialog[open]");
  await page.keyboard.press("Escape");
  assert.equal(await page.$("#help-dialog[open]"), null);
});

await test("collection: sizes, savings, redundancy", server, async (page) => {
  await page.click("#tab-collection");
  await page.waitForSelector("svg.chart");
  const text = await page.textContent("#panel-collection");
  assert.match(text, /30pages/);
  assert.match(text, /saved/);
  assert.match(text, /Most redundant pages/);
  await shot(page, "collection");
  await page.click("#panel-collection table button");
  await page.waitForSelector(".detail .says");
  assert.ok(await page.isVisible("#panel-search"));
});

await test("the address can be shared", server, async (page) => {
  await page.waitForFunction(() => document.getElementById("list-title").textContent === "10% kept");
  await page.waitForSelector(".detail .says");
  assert.equal(await page.inputValue("#query"), "question-5");
  assert.match(await page.textContent(".detail h2"), /Report 7/);
}, { address: "#example=question-5&view=10%25&page=report-07" });

await test("dark and light, remembered", server, async (page) => {
  await settled(page);
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.waitForSelector(".detail .says");
  await shot(page, "dark");
  await page.click("#theme");
  await page.reload();
  await settled(page);
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
}, { options: { ...desktop, colorScheme: "dark" } });

await test("text is readable in both themes, and every control has a name", server, async (page) => {
  await settled(page);
  const ratios = await page.evaluate(() => {
    const luminance = (hex) => { const v = hex.trim().match(/\w\w/g).map((h) => { const c = parseInt(h, 16) / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
    const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
    const out = {};
    for (const theme of ["light", "dark"]) {
      document.documentElement.dataset.theme = theme;
      const css = getComputedStyle(document.documentElement);
      for (const [front, back] of [["text", "ground"], ["text", "surface"], ["muted", "surface"], ["muted", "ground"], ["muted", "sunken"], ["accent", "surface"], ["on-accent", "accent"], ["good", "good-soft"], ["warm", "warm-soft"], ["bad", "bad-soft"], ["accent", "accent-soft"]]) {
        out[`${theme} ${front} on ${back}`] = ratio(css.getPropertyValue(`--${front}`), css.getPropertyValue(`--${back}`));
      }
    }
    return out;
  });
  for (const [pair, value] of Object.entries(ratios)) assert.ok(value >= 4.5, `${pair}: ${value.toFixed(2)}`);
  const nameless = await page.$$eval("button, input, select", (all) => all.filter((n) => n.offsetParent && !(n.textContent.trim() || n.getAttribute("aria-label") || n.getAttribute("aria-labelledby") || n.labels?.length || n.closest("label"))).map((n) => n.outerHTML));
  assert.deepEqual(nameless, []);
});

await test("phone: no sideways scrolling, a hit opens as a sheet", server, async (page) => {
  await settled(page);
  const wide = () => page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth + 1);
  assert.equal(await wide(), false);
  await shot(page, "phone");
  await page.tap("#hits .hit");
  await page.waitForSelector(".detail .says");
  assert.equal(await wide(), false);
  const box = await (await page.$("#detail")).boundingBox();
  assert.ok(box.width >= 389 && box.height >= 800);
  await shot(page, "phone-detail");
  await page.tap("#detail-close");
  assert.ok(await page.isHidden("#detail"));
  await page.tap("#tab-collection");
  await page.waitForSelector("svg.chart");
  assert.equal(await wide(), false);
}, { options: phone });

await test("text without an encoder says what to do", server, async (page) => {
  await settled(page);
  await page.fill("#query", "how do turbines work");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#banner:not([hidden])");
  assert.match(await page.textContent("#banner"), /--encoder-url/);
});

const textServer = await serve(["--encoder-url", `http://127.0.0.1:${encoder.address().port}`]);
await test("text through the encoder, and the encoder's failure", textServer, async (page) => {
  await settled(page);
  await page.fill("#query", "topic 3");
  await page.keyboard.press("Enter");
  await page.waitForFunction((first) => document.querySelector("#hits .hit")?.dataset.id === first, (await api(textServer, "v1/search", { text: "topic 3" })).hits[0].id);
  assert.match(await page.evaluate(() => location.hash), /text=topic\+3/);
  encoderWorks = false;
  await page.fill("#query", "topic 4");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#banner:not([hidden])");
  assert.match(await page.textContent("#banner"), /encoder/);
  encoderWorks = true;
  await page.click("#banner >> text=Try again");
  await page.waitForFunction((first) => document.querySelector("#hits .hit")?.dataset.id === first, (await api(textServer, "v1/search", { text: "topic 4" })).hits[0].id);
}, { allow: /502/ });
await textServer.stop();

const locked = await serve([], { MARGINMERGE_API_KEY: "correct horse" });
await test("a key is asked for, refused and accepted", locked, async (page) => {
  await page.waitForSelector("#key-dialog[open]");
  await page.fill("#key", "wrong");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#key-error:not([hidden])");
  await page.fill("#key", "correct horse");
  await page.keyboard.press("Enter");
  await settled(page);
  await page.waitForSelector("#hits .thumb img");
}, { allow: /401/ });
await locked.stop();

await test("a server that went away and came back", server, async (page) => {
  await settled(page);
  await server.stop();
  await page.click("#surprise");
  await page.waitForSelector("#banner:not([hidden])");
  assert.match(await page.textContent("#banner"), /does not answer/);
  await shot(page, "unreachable");
  const again = await serve([], {}, server.port);
  await page.click("#banner >> text=Try again");
  await settled(page);
  await again.stop();
}, { allow: /net::ERR_/ });  // the browser has many words for a server that is gone

await browser.close();
encoder.close();
for (const child of running) child.kill("SIGTERM");
for (const name of failed) console.log(`failed: ${name}`);
console.log(`${passed} passed, ${failed.length} failed`);
process.exit(failed.length ? 1 : 0);
