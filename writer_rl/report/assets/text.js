"use strict";
// Text is data: it enters the page through text nodes alone, and what can't be seen is shown.

function make(tag, options, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(options || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else if (key === "style") for (const [name, each] of Object.entries(value)) node.style.setProperty(name, each);
    else if (key === "class") node.className = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// Controls but line feed, bidirectional overrides and isolates, invisible format characters, lone halves of a surrogate pair.
const HIDDEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udfff]/g;

function shown(text, query) {
  const found = [];
  let start = 0;
  for (const match of text.matchAll(HIDDEN)) {
    found.push(...marked(text.slice(start, match.index), query));
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    found.push(make("span", { class: "ctl", title: "a character that can't be seen" }, "U+" + code));
    start = match.index + match[0].length;
  }
  found.push(...marked(text.slice(start), query));
  return found;
}

function marked(text, query) {
  if (!query) return text ? [text] : [];
  const found = [], lower = text.toLowerCase();
  let start = 0;
  for (let at = lower.indexOf(query); at >= 0; at = lower.indexOf(query, start)) {
    found.push(text.slice(start, at), make("mark", {}, text.slice(at, at + query.length)));
    start = at + query.length;
  }
  found.push(text.slice(start));
  return found;
}

// Differences by words: the longest common subsequence, what is only on one side marked as such.
const LARGEST = 4000000;

function differences(before, after) {
  const a = before.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [], b = after.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const left = a.slice(head, a.length - tail), right = b.slice(head, b.length - tail);
  const parts = [["", a.slice(0, head).join("")]];
  if (left.length * right.length > LARGEST) parts.push(["del", left.join("")], ["ins", right.join("")]);
  else parts.push(...subsequence(left, right));
  parts.push(["", a.slice(a.length - tail).join("")]);
  return parts.filter(([, text]) => text).map(([kind, text]) => (kind ? make(kind, {}, shown(text)) : shown(text)));
}

function subsequence(left, right) {
  const width = right.length + 1, table = new Uint16Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i--)
    for (let j = right.length - 1; j >= 0; j--)
      table[i * width + j] = left[i] === right[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
  const parts = [];
  const put = (kind, text) => (parts.length && parts[parts.length - 1][0] === kind ? (parts[parts.length - 1][1] += text) : parts.push([kind, text]));
  let i = 0, j = 0;
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) put("", left[i++]), j++;
    else if (j >= right.length || (i < left.length && table[(i + 1) * width + j] >= table[i * width + j + 1])) put("del", left[i++]);
    else put("ins", right[j++]);
  }
  return parts;
}

function signed(value, digits = 2) {
  const size = Math.abs(value).toFixed(digits);
  return (Number(size) === 0 ? "" : value > 0 ? "+" : "−") + size;
}

function figure(value, digits = 3) {
  return value === null || value === undefined ? "–" : value < 0 ? "−" + Math.abs(value).toFixed(digits) : value.toFixed(digits);
}
