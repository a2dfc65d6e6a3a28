// A small file that a reader chose → its texts, read here and not sent anywhere.
const NAMES = ["text", "sentence", "sentence1", "document", "content", "body", "title", "글", "문장", "본문", "내용", "텍스트"];
const LABEL_NAMES = ["label", "labels", "category", "class", "topic", "intent", "kind", "type", "라벨", "레이블", "분류", "범주", "주제"];

// UTF-8, UTF-16 with a mark, or else what Korean spreadsheets write (CP949).
async function contentOf(file) {
  const bytes = await file.arrayBuffer(), [first, second] = new Uint8Array(bytes);
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch { return new TextDecoder("euc-kr").decode(bytes); }
}

export async function textsOf(file) {
  const content = await contentOf(file), name = file.name.toLowerCase();
  if (name.endsWith(".jsonl")) return content.split("\n").map(textOfLine).filter(Boolean);
  if (!/\.[ct]sv$/.test(name)) return content.split("\n").map(line => line.trim()).filter(Boolean);
  const [head = [], ...rows] = table(content, name.endsWith(".tsv") ? "\t" : ",");
  const column = columnOf(head, rows);
  return column < 0 ? [] : rows.map(row => (row[column] ?? "").trim()).filter(Boolean);
}

// A file of examples → [{ text, label }], a label being a list where JSON says so; rows without either are left out.
export async function examplesOf(file) {
  const content = await contentOf(file), name = file.name.toLowerCase();
  if (name.endsWith(".jsonl")) return content.split("\n").map(exampleOfLine).filter(each => each.text && each.label);
  const [head = [], ...rows] = table(content, name.endsWith(".tsv") ? "\t" : ",");
  const label = head.findIndex(cell => LABEL_NAMES.includes(cell.trim().toLowerCase())), text = columnOf(head, rows);
  if (label < 0 || text < 0 || text === label) return [];
  return rows.map(row => ({ text: (row[text] ?? "").trim(), label: (row[label] ?? "").trim() })).filter(each => each.text && each.label);
}

function exampleOfLine(line) {
  try {
    const { text, label, labels = label } = JSON.parse(line);
    const written = Array.isArray(labels) ? labels.map(String) : String(labels ?? "").trim();
    return { text: typeof text === "string" ? text.trim() : "", label: written };
  } catch { return {}; }
}

function textOfLine(line) {
  try {
    const text = JSON.parse(line).text;
    return typeof text === "string" ? text : "";
  } catch { return ""; }
}

// The column with a known name, or the one with the longest cells.
function columnOf(head, rows) {
  const known = head.findIndex(name => NAMES.includes(name.trim().toLowerCase()));
  if (known >= 0 || !rows.length) return known;
  const lengths = head.map((_, column) => rows.reduce((sum, row) => sum + (row[column] ?? "").length, 0));
  return lengths.indexOf(Math.max(...lengths));
}

// RFC 4180: quoted cells may hold separators, line ends and doubled quotes.
function table(content, separator) {
  const rows = [];
  let row = [], cell = "", quoted = false;
  const endCell = () => { row.push(cell); cell = ""; };
  for (let at = 0; at < content.length; at++) {
    const ch = content[at];
    if (quoted) {
      if (ch !== '"') cell += ch;
      else if (content[at + 1] === '"') { cell += '"'; at++; } else quoted = false;
    } else if (ch === '"' && cell === "") quoted = true;
    else if (ch === separator) endCell();
    else if (ch === "\n") { endCell(); rows.push(row); row = []; } else if (ch !== "\r") cell += ch;
  }
  if (cell || row.length) { endCell(); rows.push(row); }
  return rows.filter(each => each.some(Boolean));
}
