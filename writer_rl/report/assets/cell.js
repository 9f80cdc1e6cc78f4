// One cell opened: what was read, what was written, what became of it, what it was worth.

function drawCell(view, go) {
  const detail = document.getElementById("detail");
  if (view.g === null) return detail.replaceChildren(whereToLook(view, go));
  const group = groupData(view.round, view.network), network = networkData(view.network), grid = gridOf(view.round, view.network);
  const cell = group.cells[view.g][view.t], place = { ...view, group, network, grid, cell };
  const sides = [
    heading(place, go), otherRounds(place, go), segmentOf(place), memoryOf(place), completionOf(place), actionList(place), arithmetic(place), ownerList(place), chainOf(place),
    siblings(place, go), provenanceOf(place),
  ];
  detail.replaceChildren(make("div", { class: "card" }, sides));
}

// Nothing is open: the cells of the round that teach most, and what the figures mean.
function whereToLook({ round }, go) {
  const cells = roundOf(round).networks.flatMap((grid) => grid.adv.flatMap((row, g) => row.map((a, t) => ({ network: grid.id, g, t, a, mark: grid.marks[g][t] }))));
  const silent = roundOf(round).networks.reduce((sum, grid) => sum + grid.sigma[0].filter((_, t) => isSilent(grid, t)).length, 0);
  const best = [...cells].sort((x, y) => y.a - x.a).slice(0, 5), worst = [...cells].sort((x, y) => x.a - y.a).slice(0, 5);
  const line = (cell) => make("tr", {}, make("td", {}, make("button", { style: { background: tint(cell.a / 2) }, on: { click: () => go(cell) } }, signed(cell.a, 1))),
    make("td", {}, shown(cell.network)), make("td", { class: "dim" }, `trajectory ${cell.g}, position ${cell.t}`), make("td", { class: "dim" }, MARKS[cell.mark] || ""));
  return make("div", { class: "card" }, make("h2", { style: { "margin-top": "0" } }, `Round ${round}: ${cells.length} completions`),
    make("p", {}, "Each cell is one completion: what trajectory g wrote at position t. Its colour is its advantage: how much better its return is than the mean of its column, in standard deviations. Open one."),
    silent ? make("p", {}, `${silent} columns are silent: all returns are so much alike (σ < ${index.minSigma}) that nothing is learnt there.`) : null,
    make("h3", {}, "Pushed up most"), make("table", { class: "hints" }, best.map(line)), make("h3", {}, "Pushed down most"), make("table", { class: "hints" }, worst.map(line)));
}

function heading({ round, g, t, grid }, go) {
  return make("div", { class: "head" }, make("h2", {}, `round ${round}, trajectory ${g}, position ${t}`),
    make("span", { class: "kappa", style: { background: tint(grid.adv[g][t] / 2) } }, "A " + signed(grid.adv[g][t])),
    make("button", { class: "close", "aria-label": "close", title: "close (Esc)", on: { click: () => go({ g: null, t: null }) } }, "✕"));
}

function otherRounds({ round, network, g, t }, go) {
  const others = index.rounds.filter((each) => each.networks.some((n) => n.id === network.id));
  if (others.length < 2) return null;
  return [make("h3", {}, "This cell across rounds"), make("div", { class: "strip" }, others.map((each) => {
    const grid = gridOf(each.n, network.id);
    if (!grid.adv[g]) return null;
    return make("button", { style: { background: tint(grid.adv[g][t] / 2) }, "aria-current": each.n === round ? "true" : null, title: `return ${figure(grid.ret[g][t])}`,
      on: { click: () => go({ round: each.n }) } }, each.n === round ? "▸" : "", `${each.n}: ${figure(grid.ret[g][t], 2)}`);
  }))];
}

function messageLine([speaker, ts, text], query) {
  return make("p", { class: "message" }, make("b", {}, shown(speaker)), make("span", { class: "dim" }, ts ? " " + ts.replace("T", " ").replace(/:00$/, "") : ""), "  ", make("span", { class: "text" }, shown(text, query)));
}

function segmentOf({ network, t, query }) {
  const segment = network.segments[t];
  return [make("h3", {}, "New messages"), segment.messages.map((message) => messageLine(message, query))];
}

function recordLine(record, extra) {
  return make("p", { class: "message" }, coordinates(record), "  ", make("span", { class: "text" }, shown(record[CONTENT])), extra);
}

function memoryOf({ group, g, t, cell }) {
  const { records, superseded } = memoryBefore(group, g, t);
  const current = records.filter((place) => !superseded.has(place));
  const title = `Memory before: ${current.length} records` + (superseded.size ? `, ${superseded.size} superseded` : "") + (cell.om ? `; ${cell.om} did not fit the prompt` : "");
  const fork = cell.fork === undefined ? null : make("p", { class: "dim" }, `written from the memory of trajectory ${cell.fork}`);
  if (!records.length) return [make("h3", {}, "Memory before: empty"), fork];
  return make("details", {}, make("summary", {}, title), fork, records.map((place) => recordLine(group.records[place], superseded.has(place) ? make("span", { class: "tag" }, "superseded") : null)));
}

function completionOf({ group, cell, query }) {
  return make("details", { open: !actionsOf(group, cell).length }, make("summary", {}, `Completion as written: ${cell.tk} tokens after ${cell.pt} of prompt` + (cell.fin === "length" ? ", cut off" : "")),
    make("div", { class: "text mono" }, shown(group.texts[cell.x], query)));
}

function actionList({ group, network, cell, query }) {
  const actions = actionsOf(group, cell), byPlace = (pairs) => new Map(pairs.map(([place, reference, kappa]) => [place, [reference, kappa]]));
  const matched = byPlace(cell.pairs), rematched = cell.pairs2 ? byPlace(cell.pairs2) : matched;
  const lines = actions.map((action, number) => {
    const [status, reason, place] = cell.o[number] || ["rejected", "", -1];
    const record = place >= 0 ? group.records[place] : null, pair = matched.get(place);
    return make("div", { class: "action " + status.split(" ")[0] },
      make("span", { class: "tag" + (status === "rejected" || status === "beyond" ? " bad" : status === "noop" ? "" : " good") }, status), " ",
      action && action.action === "UPDATE" ? make("span", { class: "tag" }, "UPDATE") : null, " ",
      record ? coordinates(record) : null, " ",
      make("span", { class: record ? "text" : "text mono" }, shown(record ? record[CONTENT] : JSON.stringify(action), query)),
      reason ? make("div", { class: "dim" }, shown(reason)) : null, record ? matchLine(network, record, pair) : null,
      record && rematched !== matched ? whatIfMatch(network, pair, rematched.get(place)) : null);
  });
  const general = cell.errors.filter((error) => !/^action \d+: /.test(error));
  return [make("h3", {}, `Actions: ${actions.length}` + (cell.long ? ", more than the budget" : "")), general.map((error) => make("p", { class: "tag bad" }, shown(error))), lines];
}

function matchLine(network, record, pair) {
  if (!pair) return make("div", { class: "dim" }, "no counterpart in the reference reaches the threshold");
  const reference = network.reference.find((each) => each[0] === pair[0]);
  const same = reference[CONTENT] === record[CONTENT];
  return make("div", {}, make("span", { class: "kappa", style: { background: tint(pair[1]) } }, "κ " + figure(pair[1], 2)), " ",
    same ? make("span", { class: "dim" }, "word for word") : make("span", { class: "text" }, differences(record[CONTENT], reference[CONTENT])));
}

function whatIfMatch(network, pair, other) {
  if (!pair && !other || pair && other && pair[0] === other[0] && pair[1] === other[1]) return null;
  if (!other) return make("div", { class: "dim" }, "what if: no counterpart reaches the threshold");
  const reference = network.reference.find((each) => each[0] === other[0]);
  return make("div", { class: "dim" }, "what if: ", make("span", { class: "kappa", style: { background: tint(other[1]) } }, "κ " + figure(other[1], 2)), " ", shown(reference[CONTENT]));
}

// What a credit compares (null: the return itself), and among what.
const CREDITS = {
  aligned: [null, "of the column"], local: [null, "of the column, written from one memory"], trajectory: ["the mean of the trajectory's returns", "of the trajectories"],
  difference: ["the return with R_mem's gain over the position before", "of the column"], anchor: [null, "of those written from the same memory"],
};

function arithmetic({ cell, grid, g, t }) {
  const w = index.weights, r = cell.r, last = grid.sigma[0].length - 1, gain = grid.gains[g] || 0, n = (value) => figure(value, 4);
  const faults = [["invalid JSON", w.invalid_json, !r.json && cell.errors.some((e) => e.startsWith("invalid JSON"))], ["an invalid action", w.invalid_action, cell.errors.length > 0],
    ["too many actions", w.too_many_actions, cell.long], ["length limit", w.length_limit, cell.fin === "length"]].filter(([, , held]) => held);
  const discount = w.qa * w.gamma ** (last - t), average = (rows) => rows.reduce((sum, row) => sum + row[t], 0) / rows.length;
  const value = grid.val ? grid.val[g][t] : grid.ret[g][t], mean = grid.mean ? grid.mean[g][t] : average(grid.ret), silent = isSilent(grid, t, g);
  const [what, among] = CREDITS[index.credit] || CREDITS.aligned, second = grid.val2 ? [grid.val2[g][t], grid.mean2[g][t]] : [];
  const line = (name, how, figureOf, other, kind) => make("tr", { class: kind }, make("td", {}, name), make("td", { class: "dim" }, how), make("td", { class: "num" }, n(figureOf)),
    index.whatIf ? make("td", { class: "num" }, other === undefined ? "" : n(other)) : null);
  const s = cell.r2 || {}, v = index.whatIf ? index.whatIf.weights : {};
  const rows = [
    line("validity", `${w.json}·json ${r.json} + ${w.schema}·schema ${figure(r.schema, 2)} + ${w.dup}·dup ${figure(r.dup, 2)} + ${w.stop}·stop ${r.stop}`, r.valid, s.valid, "in"),
    line("records, Φ", `${w.macro}·mean ${figure(r.phi_macro)} + ${w.worst}·worst ${figure(r.phi_worst)}`, r.phi, s.phi, "in"),
    line("chains", "soft F1 over UPDATE edges", r.chain, s.chain, "in"),
    line("memory", `${w.state}·Φ + ${w.chain}·chains`, r.mem, s.mem, "in"),
    line("validity", `${w.valid} · ${n(r.valid)}`, w.valid * r.valid, v.valid * s.valid),
    line("memory", `${w.mem} · ${n(r.mem)}`, w.mem * r.mem, v.mem * s.mem),
    line("penalty", faults.length ? faults.map(([name, cost]) => `${name} −${cost}`).join(", ") : "none", r.penalty, s.penalty),
    Object.entries(r.terms || {}).map(([name, value]) => line(name, "a term of its own", value, s.terms && s.terms[name])),
    line("question gain", grid.gains[g] === null ? "not asked" : `${w.qa} · ${w.gamma}^${last - t} · ${signed(gain, 4)}`, discount * gain, v.qa * v.gamma ** (last - t) * gain),
    line("return r", "the sum of these", grid.ret[g][t], grid.ret2 && grid.ret2[g][t], "total"),
    what || (index.whatIf && index.whatIf.credit !== index.credit) ? line("compared", what || "the return", value, second[0]) : null,
    line("mean", among, mean, second[1]),
    line("σ", silent ? `below ${index.minSigma}: silent` : "population standard deviation", grid.sigma[g][t], grid.sigma2 && grid.sigma2[g][t]),
    line("advantage A", silent ? "0, since nothing differs" : `(${n(value)} − ${n(mean)}) / ${n(grid.sigma[g][t])}` + (Math.abs(grid.adv[g][t]) >= index.maxAdvantage ? ", clipped" : ""),
      grid.adv[g][t], grid.adv2 && grid.adv2[g][t], "total"),
  ];
  const head = index.whatIf ? make("tr", {}, make("td"), make("td"), make("td", { class: "num dim" }, "the run's"), make("td", { class: "num dim" }, "what if")) : null;
  return [make("h3", {}, "From terms to advantage"), make("div", { class: "scroll" }, make("table", { class: "sum" }, head, rows))];
}

function ownerList({ cell }) {
  const owners = Object.entries(cell.r.owners || {});
  return make("details", {}, make("summary", {}, `F of each owner (${owners.length})`), make("table", { class: "sum" },
    owners.map(([owner, value]) => make("tr", {}, make("td", {}, shown(owner)), make("td", { class: "num" }, make("span", { class: "kappa", style: { background: tint(value) } }, figure(value)))))));
}

function chainOf({ group, network, g, t, cell }) {
  const mine = past(group, g, t).concat([cell]).flatMap((each) => each.up), wanted = network.edges.filter(([, to]) => network.reference.find((r) => r[0] === to)[POSITION] <= t);
  if (!mine.length && !wanted.length) return null;
  const matched = new Map(cell.ep.map(([old, now, refOld, refNew, weight]) => [old + ">" + now, [refOld, refNew, weight]]));
  const referenceOf = (id) => network.reference.find((each) => each[0] === id), found = new Set(cell.ep.map((each) => each[3]));
  return make("details", { open: cell.up.length > 0 }, make("summary", {}, `Chain edges: ${mine.length} written, ${wanted.length} in the reference, ${cell.ep.length} matched` + (cell.ep2 ? `, what if: ${cell.ep2.length}` : "")),
    mine.map(([old, now]) => {
      const pair = matched.get(old + ">" + now);
      return make("div", { class: "action " + (pair ? "applied" : "rejected") }, make("b", {}, shown(group.records[now][OWNER])), " ", make("span", { class: "text" }, shown(group.records[old][CONTENT]), " → ", shown(group.records[now][CONTENT])), " ",
        pair ? make("span", { class: "kappa", style: { background: tint(pair[2]) } }, figure(pair[2], 2)) : make("span", { class: "tag bad" }, "not in the reference"));
    }),
    wanted.filter(([, to]) => !found.has(to)).map(([from, to]) => make("div", { class: "action" }, make("span", { class: "tag" }, "missing"), " ", make("b", {}, shown(referenceOf(to)[OWNER])), " ",
      make("span", { class: "text" }, referenceOf(from) ? shown(referenceOf(from)[CONTENT]) : "", " → ", shown(referenceOf(to)[CONTENT])))));
}

function siblings({ group, g, t, cell, grid }, go) {
  const target = make("div", { class: "text mono" });
  const others = group.cells.map((row, other) => [other, row[t]]).filter(([other]) => other !== g);
  const buttons = others.map(([other, theirs]) => make("button", { style: { background: tint(grid.adv[other][t] / 2) }, title: "show the differences; twice: go there", on: {
    click: () => target.replaceChildren(...(theirs.x === cell.x ? ["the same words"] : differences(group.texts[cell.x], group.texts[theirs.x])).flat(Infinity)),
    dblclick: () => go({ g: other }) } }, `g=${other} ${signed(grid.adv[other][t], 1)}${theirs.x === cell.x ? " =" : ""}`));
  return [make("h3", {}, "Against a sibling: ", make("del", {}, "only here"), ", ", make("ins", {}, "only there")), make("div", { class: "strip" }, buttons), target];
}

function provenanceOf({ cell }) {
  return make("p", { class: "dim" }, `policy ${cell.v}` + (cell.lag ? `, ${cell.lag} update behind` : "") + (cell.seed ? `, seed ${cell.seed}` : ""));
}
