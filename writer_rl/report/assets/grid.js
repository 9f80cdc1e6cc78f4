// The G x T grid of a network: one row a trajectory, one column a position.

const COLOURS = [["advantage", "colour: advantage"], ["return", "colour: return"], ["reference", "colour: reference record"]];
if (index.whatIf) COLOURS.push(["whatif", "colour: advantage, what if"], ["shift", "colour: what-if change"]);
const FILTERS = [
  ["all", "show: all cells"], ["up", "show: pushed up (A > 0)"], ["down", "show: pushed down (A < 0)"], ["silent", "show: silent columns"],
  ["strong", "show: |A| ≥ 1"], ["fault", "show: errors and cut-offs"], ["twin", "show: same words as a sibling"],
];
if (index.whatIf) FILTERS.push(["flip", "show: other sign, what if"]);
const MARKS = { j: "no JSON", e: "errors", l: "cut off", "=": "same words as an earlier sibling" };

function tint(share) { // -1 .. 1: orange to blue, from the page's own colours, so that dark mode has its own
  const strength = Math.round(Math.min(1, Math.abs(share)) * 62);
  return `color-mix(in srgb, var(${share < 0 ? "--bad" : "--good"}) ${strength}%, var(--soft))`;
}

// A completion whose sigma is too small to learn from; without g, a column in which all are.
function isSilent(grid, t, g) { return g === undefined ? grid.sigma.every((row) => row[t] < index.minSigma) : grid.sigma[g][t] < index.minSigma; }

function passes(grid, g, t, filter) {
  const a = grid.adv[g][t], mark = grid.marks[g][t];
  return { all: true, up: a > 0, down: a < 0, silent: isSilent(grid, t), strong: Math.abs(a) >= 1, fault: "jel".includes(mark) && mark !== "", twin: mark === "=",
    flip: grid.adv2 && Math.sign(grid.adv2[g][t]) !== Math.sign(a) }[filter];
}

// [what stands in the cell, its colour from -1 to 1]
function cellFace(view, grid, g, t) {
  const a = grid.adv[g][t];
  if (view.colour === "return") {
    const column = grid.ret.map((row) => row[t]), low = Math.min(...column), high = Math.max(...column);
    return [figure(grid.ret[g][t], 2), high > low ? (2 * (grid.ret[g][t] - low)) / (high - low) - 1 : 0];
  }
  if (view.colour === "whatif") return [signed(grid.adv2[g][t], 1), grid.adv2[g][t] / 2];
  if (view.colour === "shift") return [signed(grid.adv2[g][t] - a, 1), (grid.adv2[g][t] - a) / 2];
  if (view.colour === "reference") {
    if (!view.reference) return ["", 0];
    const pair = groupData(view.round, view.network).cells[g][t].pairs.find(([, reference]) => reference === view.reference);
    return [pair ? figure(pair[2], 2) : "·", pair ? pair[2] : 0];
  }
  return [signed(a, 1), a / 2];
}

function drawGrid(view, open) {
  const grid = gridOf(view.round, view.network), network = networkData(view.network);
  const heads = grid.sigma[0].map((sigma, t) => {
    const silent = isSilent(grid, t), segment = network.segments[t];
    return make("th", { class: silent ? "silent" : "", scope: "col", title: `${segment.session}, ${segment.messages.length} messages, sigma ${figure(sigma, 3)}` },
      `t=${t}`, make("br"), silent ? "silent" : "σ " + figure(sigma, 2));
  });
  const rows = grid.adv.map((row, g) => make("tr", {},
    make("th", { class: "row", scope: "row", title: grid.gains[g] === null ? "not asked" : `question gain ${signed(grid.gains[g])}` },
      `g=${g}`, grid.gains[g] === null ? "" : make("span", {}, " ", signed(grid.gains[g]))),
    row.map((_, t) => {
      const [label, share] = cellFace(view, grid, g, t), mark = grid.marks[g][t];
      const plain = view.colour === "advantage" && isSilent(grid, t, g);
      return make("td", {}, make("button", {
        class: (plain ? "silent " : "") + (passes(grid, g, t, view.filter) ? "" : "off"),
        style: plain ? {} : { background: tint(share) },
        "aria-current": view.g === g && view.t === t ? "true" : null,
        "data-cell": `${g}/${t}`,
        title: `trajectory ${g}, position ${t}: return ${figure(grid.ret[g][t])}, advantage ${signed(grid.adv[g][t])}${mark ? ", " + MARKS[mark] : ""}`,
        on: { click: () => open(t, g) },
      }, label, mark ? make("sup", {}, { j: "✕", e: "!", l: "…", "=": "=" }[mark]) : null));
    })));
  document.getElementById("grid").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, make("th", { class: "row" }, "gain"), heads)), make("tbody", {}, rows)));
}
