// Filters made from the metadata that the pages carry.
import { $, el } from "./dom.js";

const hidden = new Set(["image", "text_file"]);

/** Fills the panel with one control for each field the server found. */
export function showFields(fields) {
  const box = $("filter-fields");
  box.replaceChildren();
  for (const field of fields) {
    if (hidden.has(field.name)) continue;
    if (field.type === "number") {
      const make = (end) => el("input", { type: "number", step: "any", placeholder: String(field[end === "gte" ? "minimum" : "maximum"]), "data-field": field.name, "data-end": end, "aria-label": `${field.name} ${end === "gte" ? "from" : "to"}` });
      box.append(el("label.field", {}, el("span", {}, field.name), el("div.range-pair", {}, make("gte"), make("lte"))));
    } else if (field.values.length && !field.more_values) {
      box.append(el("label.field", {}, el("span", {}, field.name), el("select", { "data-field": field.name, "aria-label": field.name },
        el("option", { value: "" }, "any"), ...field.values.map((v) => el("option", { value: v.value }, `${v.value} (${v.pages})`)))));
    } else {
      box.append(el("label.field", {}, el("span", {}, field.name), el("input", { type: "text", placeholder: "exactly", "data-field": field.name, "aria-label": field.name })));
    }
  }
  if (!box.children.length) box.append(el("p.muted", {}, "The pages of this index carry no metadata to filter by."));
}

/** The filter that the controls say: {filter, count}. Text fields of true/false are booleans. */
export function readFilter() {
  const object = {};
  let used = 0;
  for (const control of $("filter-fields").querySelectorAll("[data-field]")) {
    const { field, end } = control.dataset;
    if (control.value === "") continue;
    ++used;
    if (end) object[field] = { ...(object[field] || {}), [end]: Number(control.value) };
    else object[field] = control.value === "true" ? true : control.value === "false" ? false : control.value;
  }
  const text = $("filter-text").value.trim();
  if (text) ++used;
  if (!used) return { filter: null, count: 0 };
  if (!text) return { filter: object, count: used };
  return { filter: Object.keys(object).length ? [object, text] : text, count: used };
}

export function clearFilter() {
  for (const control of $("filter-fields").querySelectorAll("[data-field]")) control.value = "";
  $("filter-text").value = "";
}
