// Small helpers: elements from data, numbers for people.

/** el("button.primary", {onclick}, "text", child…); text is never taken as HTML. */
export function el(spec, properties = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style" || name.includes("-") || name === "role" || name === "for") node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

export const $ = (id) => document.getElementById(id);

export function bytes(n) {
  for (const unit of ["bytes", "KB", "MB", "GB"]) {
    if (n < 1000) return `${unit === "bytes" || n >= 100 ? Math.round(n) : n.toFixed(1)} ${unit}`;
    n /= 1000;
  }
  return `${n.toFixed(1)} TB`;
}

export const count = (n) => n.toLocaleString("en-US");
export const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0).replace(/\.0$/, "")}%`;
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
