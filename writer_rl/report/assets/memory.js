// What is stored, read when it is first needed; and memories, rebuilt from what each position added.

const index = JSON.parse(document.getElementById("index").textContent);
const parsed = new Map();

function stored(name) {
  if (!parsed.has(name)) {
    const element = document.getElementById(name);
    parsed.set(name, element ? JSON.parse(element.textContent) : null);
  }
  return parsed.get(name);
}

const networkData = (id) => stored("network-" + index.networks.indexOf(id));
const groupData = (round, id) => stored("round-" + round + "-" + index.networks.indexOf(id));
const roundOf = (number) => index.rounds.find((each) => each.n === number);
const gridOf = (round, id) => roundOf(round).networks.find((each) => each.id === id);

// Which cells lie behind (g, t), oldest first: those of its own trajectory, or of the one it was forked from.
function past(group, g, t) {
  const cells = [];
  let row = g;
  for (let position = t; position > 0; position--) {
    const fork = group.cells[row][position].fork;
    if (fork !== undefined) row = fork;
    cells.unshift(group.cells[row][position - 1]);
  }
  return cells;
}

// The records of the memory before (g, t), and which of them were superseded.
function memoryBefore(group, g, t) {
  const records = [], superseded = new Set();
  for (const cell of past(group, g, t)) {
    records.push(...cell.new);
    for (const [old] of cell.up) superseded.add(old);
  }
  return { records, superseded };
}

function actionsOf(group, cell) {
  if (cell.acts) return cell.acts;
  try {
    const actions = JSON.parse(group.texts[cell.x]).actions;
    return Array.isArray(actions) ? actions : [];
  } catch {
    return [];
  }
}

// [id, owner, source, layer, utype, content, position] of a record or a reference record.
const OWNER = 1, SOURCE = 2, LAYER = 3, UTYPE = 4, CONTENT = 5, POSITION = 6;
const shortLayer = (layer) => layer.replace("per_speaker_", "").replace("group_", "");

function coordinates(record) {
  const from = record[SOURCE] === record[OWNER] ? "" : " ← " + record[SOURCE];
  return [make("b", {}, shown(record[OWNER])), make("span", { class: "dim" }, shown(from), " ", make("span", { class: "tag" }, shown(shortLayer(record[LAYER]))), " ",
    make("span", { class: "tag" }, shown(record[UTYPE])))];
}
