// Where the reader is: the address says it, and everything is drawn from that.

const view = { round: null, network: null, g: null, t: null, colour: "advantage", filter: "all", tab: "reference", reference: null, query: "" };

// #round/network/t/g; a network's name may hold anything, so it is escaped.
function readAddress() {
  const parts = location.hash.slice(1).split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  const round = roundOf(Number(parts[0])) || index.rounds[index.rounds.length - 1];
  const grid = round.networks.find((each) => each.id === parts[1]) || round.networks[0];
  const t = Number(parts[2]), g = Number(parts[3]);
  const there = parts.length > 3 && parts[2] !== "" && parts[3] !== "" && grid.adv[g] !== undefined && grid.adv[g][t] !== undefined;
  Object.assign(view, { round: round.n, network: grid.id, t: there ? t : null, g: there ? g : null });
}

function address(place) {
  const cell = place.g === null ? "" : `/${place.t}/${place.g}`;
  return `#${place.round}/${encodeURIComponent(place.network)}${cell}`;
}

function go(changes) {
  const place = { ...view, ...changes };
  if (!roundOf(place.round).networks.some((each) => each.id === place.network)) place.network = roundOf(place.round).networks[0].id;
  const grid = gridOf(place.round, place.network);
  if (place.g !== null && !(grid.adv[place.g] && grid.adv[place.g][place.t] !== undefined)) place.g = place.t = null;
  if (place.network !== view.network) place.reference = null;
  const moved = address(place) !== address(view);
  Object.assign(view, place);
  if (moved) history.pushState(null, "", address(view));
  draw(changes.g !== undefined && changes.g !== null);
}

function fill(id, choices, chosen) {
  document.getElementById(id).replaceChildren(...choices.map(([value, label]) => make("option", { value, selected: String(value) === String(chosen) }, label)));
}

function draw(opened) {
  const round = roundOf(view.round), metrics = Object.entries(index.metrics[view.round] || {});
  fill("round", index.rounds.map((each) => [each.n, "round " + each.n]), view.round);
  fill("network", round.networks.map((each) => [each.id, each.id]), view.network);
  fill("colour", COLOURS, view.colour);
  fill("filter", FILTERS, view.filter);
  const notes = metrics.map(([name, value]) => `${name} ${typeof value === "number" ? figure(value) : value}`);
  if (index.whatIf) notes.push("what if: " + index.whatIf.name);
  if (index.differing) notes.push(`${index.differing} completions replay otherwise than recorded: the data or the environment has changed since`);
  document.getElementById("facts").textContent = notes.join("  ·  ");
  drawGrid(view, (t, g) => go({ t, g }));
  drawTabs(view, go);
  drawCell(view, go);
  if (opened && matchMedia("(max-width: 50rem)").matches) document.getElementById("detail").scrollIntoView({ behavior: "instant" });
}

// Everything that anyone wrote, in every round of the page: read once, when first searched.
let corpus = null;

function collected() {
  if (corpus) return corpus;
  corpus = [];
  for (const round of index.rounds) for (const { id } of round.networks) {
    const group = groupData(round.n, id);
    group.cells.forEach((row, g) => row.forEach((cell, t) => corpus.push([{ round: round.n, network: id, g, t }, group.texts[cell.x], `round ${round.n}, ${id}, trajectory ${g}, position ${t}`])));
    for (const question of group.questions) corpus.push([{ round: round.n, network: id, g: null, t: null, tab: "questions" }, question.question + "\n" + question.exchanges.map((e) => e.answer).join("\n"), `round ${round.n}, ${id}, question ${question.question_id}`]);
  }
  for (const id of index.networks) networkData(id).segments.forEach((segment, t) => segment.messages.forEach(([speaker, , text]) => {
    const round = [...index.rounds].reverse().find((each) => each.networks.some((n) => n.id === id)).n;
    corpus.push([{ round, network: id, g: 0, t }, speaker + ": " + text, `${id}, message of position ${t}`]);
  }));
  return corpus;
}

const MOST_RESULTS = 60;

function search(text) {
  const results = document.getElementById("results"), query = text.trim().toLowerCase();
  view.query = query;
  results.hidden = query.length < 2;
  if (query.length < 2) return draw(false);
  const hits = collected().filter(([, each]) => each.toLowerCase().includes(query));
  results.replaceChildren(make("p", { class: "dim" }, `${hits.length} places` + (hits.length > MOST_RESULTS ? `, the first ${MOST_RESULTS} shown` : "")), ...hits.slice(0, MOST_RESULTS).map(([place, each, label]) => {
    const at = each.toLowerCase().indexOf(query), from = Math.max(0, at - 40);
    return make("a", { href: address(place), on: { click: (event) => { event.preventDefault(); results.hidden = true; go({ ...place }); } } },
      shown((from ? "…" : "") + each.slice(from, at + query.length + 60), query), make("span", {}, label));
  }));
}

const KEYS = [
  ["← ↑ → ↓", "another cell"], ["n, p", "next round, round before"], ["j, k", "next network, network before"], ["c, f", "other colours, other filter"],
  ["1, 2, 3", "reference, questions, conversation"], ["/", "search"], ["Esc", "close"], ["?", "this help"],
];

function step(list, current, by) { return list[Math.max(0, Math.min(list.length - 1, list.indexOf(current) + by))]; }

function onKey(event) {
  const field = event.target.tagName === "INPUT" || event.target.tagName === "SELECT";
  if (event.key === "Escape") {
    document.getElementById("results").hidden = true;
    event.target.blur();
    return field ? null : go({ g: null, t: null });
  }
  if (field || event.ctrlKey || event.metaKey || event.altKey) return;
  const rounds = index.rounds.map((each) => each.n), networks = roundOf(view.round).networks.map((each) => each.id), grid = gridOf(view.round, view.network);
  const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }, size = [grid.adv.length, grid.sigma[0].length];
  const cycle = (list, value) => list[(list.findIndex(([each]) => each === value) + 1) % list.length][0];
  if (moves[event.key]) {
    const [dg, dt] = moves[event.key], within = (value, top) => Math.max(0, Math.min(top - 1, value));
    go(view.g === null ? { g: 0, t: 0 } : { g: within(view.g + dg, size[0]), t: within(view.t + dt, size[1]) });
  } else if (event.key === "n") go({ round: step(rounds, view.round, 1) });
  else if (event.key === "p") go({ round: step(rounds, view.round, -1) });
  else if (event.key === "j") go({ network: step(networks, view.network, 1), g: null, t: null });
  else if (event.key === "k") go({ network: step(networks, view.network, -1), g: null, t: null });
  else if (event.key === "c") go({ colour: cycle(COLOURS, view.colour) });
  else if (event.key === "f") go({ filter: cycle(FILTERS, view.filter) });
  else if ("123".includes(event.key)) go({ tab: TABS[Number(event.key) - 1][0] });
  else if (event.key === "/") document.getElementById("search").focus();
  else if (event.key === "?") document.getElementById("help").showModal();
  else return;
  event.preventDefault();
}

function begin() {
  const rounds = index.rounds.map((each) => each.n), on = (id, event, handler) => document.getElementById(id).addEventListener(event, handler);
  on("round", "change", (event) => go({ round: Number(event.target.value) }));
  on("round-before", "click", () => go({ round: step(rounds, view.round, -1) }));
  on("round-after", "click", () => go({ round: step(rounds, view.round, 1) }));
  on("network", "change", (event) => go({ network: event.target.value, g: null, t: null }));
  on("colour", "change", (event) => go({ colour: event.target.value }));
  on("filter", "change", (event) => go({ filter: event.target.value }));
  on("search", "input", (event) => search(event.target.value));
  on("help-button", "click", () => document.getElementById("help").showModal());
  document.getElementById("help").replaceChildren(make("h2", {}, "Keys"), make("dl", {}, KEYS.map(([key, does]) => [make("dt", {}, key), make("dd", {}, does)])), make("h2", {}, "Cells"),
    make("p", {}, "A row is a trajectory, a column a writing position. ", make("span", { class: "swatch", style: { background: tint(1) } }), " pushed up, ", make("span", { class: "swatch", style: { background: tint(-1) } }),
      " pushed down, hatched: silent, the returns of the column differ too little to learn from. ✕ no JSON, ! errors, … cut off, = the same words as an earlier sibling. Beside g stands the trajectory's question gain."),
    make("form", { method: "dialog" }, make("button", {}, "close")));
  addEventListener("keydown", onKey);
  const follow = () => { readAddress(); draw(view.g !== null); };
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  follow();
  if (index.live) setInterval(() => { if (document.activeElement.id !== "search" && document.getElementById("results").hidden) location.reload(); }, 10000);
}

begin();
