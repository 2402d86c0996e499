// Draws a page: its image or a schematic of its patches, with a heat map or its clusters on top.

// Dark blue to yellow through grey: ordered in lightness, and told apart by every kind of colour vision.
const scale = [[0, 32, 76], [28, 62, 108], [75, 90, 109], [112, 120, 122], [152, 152, 116], [198, 185, 99], [253, 234, 69]];

export function heatColour(t) {
  const x = Math.max(0, Math.min(1, t)) * (scale.length - 1);
  const i = Math.min(scale.length - 2, Math.floor(x));
  return scale[i].map((v, c) => Math.round(v + (x - i) * (scale[i + 1][c] - v)));
}

// Neighbouring numbers get far hues and alternate in lightness, so touching clusters differ in both.
export function clusterColour(i) {
  return `hsl(${(i * 137.508) % 360} ${[50, 40, 60][i % 3]}% ${[46, 66, 36, 76][i % 4]}%)`;
}

/** Where each original vector lies on the page, in fractions of its width and height. */
export function layout(page) {
  const n = page.owner.length;
  if (page.boxes) {
    return { cells: page.boxes.map(([l, t, r, b]) => [l, t, r - l, b - t]), aspect: null, known: true };
  }
  let columns, rows, known = false;
  if (page.grid && page.grid[0] * page.grid[1] <= n) {
    [columns, rows] = page.grid;
    known = true;
  } else if (Number.isInteger(Math.sqrt(n)) && n > 3) {
    columns = rows = Math.sqrt(n);
  } else {
    columns = Math.max(1, Math.ceil(Math.sqrt(n * 1.25)));
    rows = Math.ceil(n / columns);
  }
  const inGrid = known ? columns * rows : n;
  // Vectors that belong to no patch (special tokens of the encoder) go into a strip below.
  const extra = n - inGrid;
  const stripRows = Math.ceil(extra / columns);
  const total = rows + (extra ? stripRows + 0.5 : 0);
  const cells = [];
  for (let i = 0; i < n; ++i) {
    const below = i >= inGrid;
    const at = below ? i - inGrid : i;
    const y = Math.floor(at / columns) + (below ? rows + 0.5 : 0);
    cells.push([(at % columns) / columns, y / total, 1 / columns, 1 / total]);
  }
  return { cells, aspect: columns / total, known, strip: extra };
}

/** One heat value for each representative: of one token, or all tokens' answers together. */
export function heatOf(page, token) {
  const count = page.vectors;
  if (token === null || !page.similarities) {
    const heat = new Array(count).fill(0);
    for (const t of page.tokens || []) if (t.representative >= 0) heat[t.representative] += Math.max(0, t.score);
    const top = Math.max(...heat, 1e-9);
    return heat.map((h) => h / top);
  }
  const row = page.similarities[token];
  const low = Math.min(...row), high = Math.max(...row);
  return row.map((v) => (v - low) / Math.max(1e-9, high - low));
}

function outline(context, layoutOf, owner, representative, w, h, colour, width) {
  context.beginPath();
  const { cells } = layoutOf;
  const mine = new Set();
  const keyOf = (x, y) => `${Math.round(x * 2000)}:${Math.round(y * 2000)}`;
  cells.forEach((c, i) => { if (owner[i] === representative) mine.add(keyOf(c[0] + c[2] / 2, c[1] + c[3] / 2)); });
  cells.forEach(([x, y, cw, ch], i) => {
    if (owner[i] !== representative) return;
    const has = (dx, dy) => mine.has(keyOf(x + cw / 2 + dx * cw, y + ch / 2 + dy * ch));
    const edge = (x1, y1, x2, y2) => { context.moveTo(x1 * w, y1 * h); context.lineTo(x2 * w, y2 * h); };
    if (!has(0, -1)) edge(x, y, x + cw, y);
    if (!has(0, 1)) edge(x, y + ch, x + cw, y + ch);
    if (!has(-1, 0)) edge(x, y, x, y + ch);
    if (!has(1, 0)) edge(x + cw, y, x + cw, y + ch);
  });
  context.lineCap = "round";
  for (const [style, lineWidth] of [["rgb(0 0 0 / .75)", width + 2.5], [colour, width]]) {
    context.strokeStyle = style;
    context.lineWidth = lineWidth;
    context.stroke();
  }
}

/**
 * Draws `page` (an explanation or a page with owner) into a canvas as wide as its box.
 * options: mode "heat" | "clusters" | "plain", token (number or null), image, hover (representative), gap.
 */
export function drawPage(canvas, page, options) {
  const where = layout(page);
  const { image } = options;
  const aspect = image ? image.naturalWidth / Math.max(1, image.naturalHeight) : where.aspect || 0.75;
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  const width = options.width || canvas.clientWidth || 320;
  const height = Math.min(width / aspect, options.maxHeight || Infinity);
  const w = height * aspect, h = height;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(h * ratio);
  canvas.style.height = `${h}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, h);
  context.translate((width - w) / 2, 0);
  const dark = document.documentElement.dataset.theme === "dark";
  if (image) context.drawImage(image, 0, 0, w, h);
  if (options.mode !== "plain" || !image) {
    const heat = options.mode === "heat" ? heatOf(page, options.token) : null;
    const gap = image || options.tight ? 0 : Math.min(1.2, (w * where.cells[0][2]) * 0.06);
    where.cells.forEach(([x, y, cw, ch], i) => {
      const owner = page.owner[i];
      context.globalAlpha = 1;
      if (options.mode === "plain") {
        context.fillStyle = dark ? "#2c3936" : "#dfe6e4";
      } else if (owner < 0) {
        if (image) return;
        context.fillStyle = dark ? "#262f2d" : "#e6eae9";
      } else if (options.mode === "clusters") {
        context.fillStyle = clusterColour(owner);
        context.globalAlpha = image ? 0.55 : 1;
      } else {
        const value = heat[owner];
        const [r, g, b] = heatColour(value);
        context.fillStyle = `rgb(${r} ${g} ${b})`;
        context.globalAlpha = image ? 0.22 + 0.53 * value : 1;
      }
      if (gap) {
        context.fillRect(x * w + gap / 2, y * h + gap / 2, cw * w - gap, ch * h - gap);
      } else {
        // Whole device pixels, so that no seams show between neighbours.
        const snap = (v) => Math.round(v * ratio) / ratio;
        context.fillRect(snap(x * w), snap(y * h), snap((x + cw) * w) - snap(x * w), snap((y + ch) * h) - snap(y * h));
      }
    });
    context.globalAlpha = 1;
  }
  if (!options.tight) {
    if (options.mode === "heat" && options.token !== null && page.tokens?.[options.token]) {
      const winner = page.tokens[options.token].representative;
      if (winner >= 0) outline(context, where, page.owner, winner, w, h, "#ffffff", 2);
    }
    if (options.hover !== undefined && options.hover >= 0) outline(context, where, page.owner, options.hover, w, h, "#ff8a3c", 2);
  }
  return { where, w, h, left: (width - w) / 2 };
}

/** Which original vector lies under a point of the canvas, or -1. */
export function patchAt(drawn, x, y) {
  const px = (x - drawn.left) / drawn.w, py = y / drawn.h;
  return drawn.where.cells.findIndex(([cx, cy, cw, ch]) => px >= cx && px < cx + cw && py >= cy && py < cy + ch);
}

export function drawLegend(canvas) {
  canvas.width = 130;
  canvas.height = 1;
  const context = canvas.getContext("2d");
  for (let i = 0; i < 130; ++i) {
    const [r, g, b] = heatColour(i / 129);
    context.fillStyle = `rgb(${r} ${g} ${b})`;
    context.fillRect(i, 0, 1, 1);
  }
}
