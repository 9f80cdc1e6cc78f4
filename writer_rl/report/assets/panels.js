// What stands under the grid: reference records, questions, the conversation.

const TABS = [["reference", "Reference"], ["questions", "Questions"], ["messages", "Conversation"]];

function drawTabs(view, go) {
  document.getElementById("tabs").replaceChildren(...TABS.map(([name, label]) =>
    make("button", { role: "tab", "aria-selected": view.tab === name ? "true" : "false", "data-tab": name, on: { click: () => go({ tab: name }) } }, label)));
  const draw = { reference: referencePanel, questions: questionPanel, messages: messagePanel }[view.tab];
  document.getElementById("panel").replaceChildren(...[draw(view, go)].flat(Infinity));
}

// Which of the G wrote a reference record by the chosen position, in which words.
function referencePanel(view, go) {
  const group = groupData(view.round, view.network), network = networkData(view.network), last = network.segments.length - 1;
  const t = view.t === null ? last : view.t;
  const wanted = network.reference.filter((record) => record[POSITION] <= t);
  const pairs = group.cells.map((row) => new Map(row[t].pairs.map(([place, reference, kappa]) => [reference, [place, kappa]])));
  const count = wanted.length ? `${wanted.length} reference records by position ${t}; each button is a trajectory, with its kappa` : "the reference holds nothing by this position";
  return [make("p", { class: "dim" }, count), wanted.map((record) => {
    const words = make("div", { class: "words" });
    const box = make("div", { class: "ref" + (view.reference === record[0] ? " open" : "") },
      make("button", { class: "name", title: "colour the grid by this record", on: { click: () => go({ colour: "reference", reference: view.reference === record[0] ? null : record[0] }) } },
        make("span", { class: "tag" }, "t=" + record[POSITION]), " ", coordinates(record), " ", make("span", { class: "text" }, shown(record[CONTENT]))),
      make("div", { class: "who" }, pairs.map((found, g) => {
        const pair = found.get(record[0]);
        return make("button", { style: { background: tint(pair ? pair[1] : 0) }, title: pair ? "" : "not written by trajectory " + g, on: { click: () => go({ g, t }) } }, pair ? figure(pair[1], 2) : "·");
      })), words);
    if (view.reference === record[0]) words.append(...pairs.map((found, g) => {
      const pair = found.get(record[0]);
      return make("div", { class: "message" }, make("span", { class: "tag" }, "g=" + g), " ",
        pair ? make("span", { class: "text" }, differences(record[CONTENT], group.records[pair[0]][CONTENT])) : make("span", { class: "dim" }, "did not write it"));
    }));
    return box;
  })];
}

function itemLine(item) {
  const source = item.source && item.source !== item.owner ? " ← " + item.source : "";
  return make("div", { class: "message" }, make("b", {}, shown(item.owner)), make("span", { class: "dim" }, shown(source), item.ts ? " " + item.ts : ""), "  ", make("span", { class: "text" }, shown(item.content)),
    item.current === false ? make("span", { class: "tag" }, "superseded") : null);
}

function evidenceRow(row) {
  const items = [...row.chains.flat(), ...row.said, ...(row.fallback ? [row.fallback] : [])];
  return make("div", { class: "action" }, items.length ? items.map(itemLine) : [make("b", {}, shown(row.owner)), make("span", { class: "dim" }, " nothing recorded")]);
}

function verdictLine(exchange) {
  const who = exchange.track === "s1" ? "messages alone" : "trajectories " + exchange.trajectories.join(", ");
  return make("div", { class: "action " + (exchange.correct ? "applied" : "rejected") },
    make("span", { class: "tag " + (exchange.correct ? "good" : "bad") }, exchange.correct ? "right" : "wrong"), " ", make("span", { class: "dim" }, who + ": "),
    make("span", { class: "text" }, shown((exchange.option ? exchange.option + " " : "") + exchange.answer)), exchange.reason ? make("div", { class: "dim" }, shown(exchange.reason)) : null,
    exchange.rows.length ? make("details", {}, make("summary", {}, "records read"), exchange.rows.map(evidenceRow)) : null);
}

function questionPanel(view) {
  const questions = groupData(view.round, view.network).questions;
  if (!questions.length) return make("p", { class: "dim" }, "No question is stored for this round.");
  return questions.map((question) => make("div", { class: "ref" }, make("h3", {}, shown(question.category), " ", shown(question.question_id)), make("p", { class: "text" }, shown(question.question)),
    Object.entries(question.options || {}).map(([letter, text]) => make("div", { class: "dim" }, shown(letter + ") " + text))),
    make("p", {}, make("span", { class: "tag" }, "gold"), " ", make("span", { class: "text" }, shown(question.gold))),
    question.error ? make("p", { class: "tag bad" }, shown(question.error)) : null, question.exchanges.map(verdictLine),
    make("details", {}, make("summary", {}, `messages read (${question.messages.length}, the same for all)`), question.messages.map(itemLine))));
}

function messagePanel(view, go) {
  return networkData(view.network).segments.map((segment, t) => [make("h3", {}, `t=${t} `, shown(segment.session), " ", segment.ts), segment.messages.map((message) => messageLine(message, view.query))]);
}
