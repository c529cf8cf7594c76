// How the report is shown: filters, what failed, matrix, cases.

const report = JSON.parse(document.getElementById('data').textContent);
const text = (at) => at === undefined ? '' : report.strings[at];
const byId = (id) => document.getElementById(id);
const FIRST_OF_A_CAUSE = 6;
const FIRST_CASES = 200;  // shown until "show all"
const ROWS_AT_ONCE = 10;  // of the matrix
const KIND = {
  'pass': 'pass', 'fail': 'fail', 'suite-error': 'fail', 'partial': 'open', 'not-checkable': 'open', 'waived': 'warn', 'bounded': 'warn'
};

function add(parent, name, properties, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key in node) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  if (parent) parent.append(node);
  return node;
}

const plural = (n, word) => n + ' ' + word + (n === 1 ? '' : 's');
const tag = (status) => add(null, 'span', {className: 'tag ' + (KIND[status] || '')}, status);
const tokens = (id) => id.split('.').length;

// ---- filters: the fragment of the address is their state

const FIELDS = ['q', 'requirement', 'status', 'group'];

function readFragment() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has('filter')) given.set('requirement', given.get('filter'));
  for (const field of FIELDS) byId(field).value = given.get(field) || '';
}

function writeFragment() {
  const state = new URLSearchParams();
  for (const field of FIELDS) if (byId(field).value) state.set(field, byId(field).value);
  history.replaceState(null, '', '#' + state);
}

function searched(c) {
  if (c.searched === undefined) {
    const words = [c.id, text(c.reason)];
    for (const row of c.told) words.push(row.broken, ...['message', 'expected', 'seen', 'operation'].map((k) => text(row[k])));
    c.searched = words.join('\n').toLowerCase();
  }
  return c.searched;
}

function matches(c) {
  const q = byId('q').value.toLowerCase(), requirement = byId('requirement').value.trim().toUpperCase();
  if (byId('status').value && c.status !== byId('status').value) return false;
  if (byId('group').value && report.groups[c.group] !== byId('group').value) return false;
  if (requirement && !c.breaks.some((id) => id.toUpperCase().startsWith(requirement))) return false;
  return !q || searched(c).includes(q);
}

// ---- one finding

function showReplay(parent, line, what) {
  const row = add(parent, 'div', {className: 'replay'}, add(null, 'code', {}, line));
  const button = add(row, 'button', {type: 'button', title: 'copy the ' + what}, 'copy');
  button.addEventListener('click', () => {
    const range = document.createRange();
    range.selectNodeContents(row.firstChild);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand('copy');
    button.textContent = 'copied';
  });
}

// What one needs who meets the requirement for the first time.
function showLesson(parent, id) {
  const lesson = report.lessons[id];
  if (!lesson) return;
  const list = add(parent, 'dl', {className: 'lesson'});
  for (const [key, name] of [['why', 'why'], ['bug', 'known from'], ['fix', 'how to mend it']]) {
    if (!lesson[key]) continue;
    add(list, 'dt', {}, name);
    add(list, 'dd', {}, lesson[key]);
  }
}

function showFolded(parent, name, lines) {
  if (!lines) return;
  const box = add(parent, 'details', {className: 'aside'});
  add(box, 'summary', {}, name);
  add(box, 'pre', {}, lines.map(text).join('\n'));
}

// cause: under which it is shown, whose sentence has been said.
function showFinding(parent, c, row, cause) {
  const sentence = report.sentences[row.requirement] || '';
  if (row.broken !== cause) add(parent, 'p', {}, add(null, 'strong', {}, row.broken), ' ', sentence);
  if (row.message !== row.seen) add(parent, 'p', {className: 'message'}, text(row.message));
  const list = add(parent, 'dl');
  const line = (name, value, kind) => {
    if (!value) return;
    add(list, 'dt', {}, name);
    add(list, 'dd', {className: kind || ''}, value);
  };
  if (row.warning) line('warning', 'a SHOULD: only --strict makes it a failure');
  line('waived', text(row.waived));
  const where = [];
  if (row.rank !== undefined) where.push('rank ' + row.rank);
  if (row.step !== undefined) where.push('step ' + row.step);
  if (row.event !== undefined) where.push('event ' + row.event);
  line('where', where.join(', '));
  line('stream', text(row.stream));
  line('operation', text(row.operation));
  line('expected', text(row.expected), 'good');
  line('seen', text(row.seen), 'bad');
  if (row.drawing !== undefined) {
    parent.append(drawFinding(row.drawing, text, row.broken + ' in ' + c.id));
    const circle = row.drawing.links.some((link) => link[2] === 3), unordered = row.drawing.links.some((link) => link[2] === 2);
    add(parent, 'p', {className: 'note'}, circle ? 'Red arrows: who waits for what. ' : '',
        'Red: where it shows. Amber: ' + (unordered ? 'what it is not ordered with, or what meets it' : 'what has part in it') +
            '. Green lines join the parts of a ' +
            'collective, arrows lead from a record to its wait. Left to right is the order in which a rank issues. ' +
            'Point at an operation for its full name.');
    const list = add(add(parent, 'details', {className: 'aside'}, add(null, 'summary', {}, 'the drawing in words')), 'ul');
    for (const line of inWords(row.drawing, text)) add(list, 'li', {}, line);
    if (row.drawing.memory) {
      parent.append(drawMemory(row.drawing.memory));
      add(parent, 'p', {className: 'note'}, memoryInWords(row.drawing.memory));
    }
  }
  if (row.folded) add(parent, 'p', {className: 'folded'}, text(row.folded));
}

function showCase(parent, c, requirement, open) {
  const box = add(parent, 'details', {className: 'case'});
  add(box, 'summary', {}, add(null, 'span', {className: 'id'}, c.id), tag(c.status));
  const fill = () => {
    if (box.childElementCount > 1) return;
    if (c.page) {
      const href = 'report-' + c.page + '.html';
      add(box, 'p', {}, 'In ', add(null, 'a', {href}, href));
      return;
    }
    if (c.reason !== undefined) add(box, 'p', {}, text(c.reason));
    const rows = c.told.filter((row) => !requirement || row.requirement === requirement);
    for (const row of rows.length ? rows : c.told) showFinding(box, c, row, requirement);
    showReplay(box, text(c.replay), 'command that runs the case again');
    if (c.shrink !== undefined) showReplay(box, text(c.shrink), 'command that looks for a smaller case');
    showFolded(box, 'what the engine printed', c.printed);
    showFolded(box, 'notes', c.notes);
  };
  box.addEventListener('toggle', fill);
  if (open) {
    fill();
    box.open = true;
  }
}

// ---- what failed: by requirement, the smallest case first

function showCauses(cases) {
  const causes = new Map();
  for (const c of cases) {
    const keys = c.told.length || c.page ? c.roots : c.status === 'suite-error' ? ['the suite'] : [];
    for (const key of keys) causes.set(key, [...(causes.get(key) || []), c]);
  }
  const sorted = [...causes].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
  const place = byId('causes');
  place.replaceChildren();
  if (!sorted.length) add(place, 'p', {className: 'note'}, 'Nothing, among the cases that are shown.');
  sorted.forEach(([id, of], nth) => {
    of.sort((a, b) => tokens(a.id) - tokens(b.id) || a.id.length - b.id.length);
    const box = add(place, 'details', {className: 'cause'});
    const head = add(box, 'summary', {}, add(null, 'h3', {}, id));
    add(head, 'span', {className: 'tag fail'}, plural(of.length, 'case'));
    add(head, 'span', {className: 'sentence'}, report.sentences[id] || '');
    const fill = () => {
      if (box.childElementCount > 1) return;
      showLesson(box, id);
      of.slice(0, FIRST_OF_A_CAUSE).forEach((c, i) => showCase(box, c, id, i === 0));
      if (of.length <= FIRST_OF_A_CAUSE) return;
      const button = add(box, 'button', {type: 'button', className: 'rest'}, (of.length - FIRST_OF_A_CAUSE) + ' more');
      button.addEventListener('click', () => {
        button.remove();
        of.slice(FIRST_OF_A_CAUSE).forEach((c) => showCase(box, c, id, false));
      });
    };
    box.addEventListener('toggle', fill);
    if (nth === 0) {
      fill();
      box.open = true;
    }
  });
}

// ---- matrix and cases

function matrixRow(body, id, cells) {
  const row = add(body, 'tr', {title: report.sentences[id] || ''});
  add(row, 'th', {scope: 'row'}, add(null, 'a', {href: '#requirement=' + encodeURIComponent(id)}, id));
  for (const [judged, failed, excused, open] of cells) {
    const [kind, n, word] = failed ? ['fail', failed, 'failed'] : excused ? ['warn', excused, 'warned or waived'] :
        open ? ['open', open, 'not judged'] : judged ? ['pass', judged, 'judged'] : ['', '·', 'not asked'];
    const cell = add(row, 'td', {}, add(null, 'span', {className: 'cell ' + kind, title: id + ': ' + plural(n, 'case') + ' ' + word}, String(n)));
    add(cell, 'span', {className: 'said'}, ' ' + word);
  }
}

// The matrix of a long run has 10,000 cells: three times the work of the rest of the page. It is made once what failed can be
// read, in pieces between which the page answers, and put in its place as a whole.
function showMatrix() {
  const table = byId('matrix');
  const head = add(add(table, 'thead'), 'tr');
  add(head, 'th', {scope: 'col'}, 'requirement');
  const used = report.groups.map((_, at) => report.matrix.some(([, cells]) => cells[at].some((n) => n > 0)));
  report.groups.forEach((group, at) => { if (used[at]) add(head, 'th', {scope: 'col'}, group); });
  const body = document.createElement('tbody');
  const rest = report.matrix.map(([id, cells]) => [id, cells.filter((_, at) => used[at])]);
  const more = (rows) => {
    for (const [id, cells] of rest.splice(0, rows)) matrixRow(body, id, cells);
    if (rest.length || body.parentNode) return;
    table.append(body);
    document.documentElement.dataset.matrix = 'shown';
  };
  const goOn = () => {
    more(ROWS_AT_ONCE);
    if (rest.length) setTimeout(goOn);
  };
  goOn();
  addEventListener('beforeprint', () => more(rest.length));
}

let all = false;
function showCases(cases) {
  const table = byId('cases');
  table.replaceChildren();
  const head = add(add(table, 'thead'), 'tr');
  for (const name of ['status', 'case', 'breaks', 'why']) add(head, 'th', {scope: 'col'}, name);
  const body = add(table, 'tbody');
  for (const c of all ? cases : cases.slice(0, FIRST_CASES)) {
    const row = add(body, 'tr');
    add(row, 'td', {}, tag(c.status));
    add(row, 'td', {className: 'id'}, c.id);
    add(row, 'td', {}, c.breaks.join(', '));
    const why = add(row, 'td', {}, text(c.reason));
    showFolded(why, plural((c.notes || []).length, 'note'), c.notes);
  }
  byId('more').hidden = all || cases.length <= FIRST_CASES;
}

function show() {
  const cases = report.cases.filter(matches);
  byId('shown').textContent = cases.length + ' of ' + plural(report.cases.length, 'case');
  showCauses(cases);
  showCases(cases);
}

function fillHead() {
  document.title = report.title;
  byId('what').textContent = report.what;
  byId('verdict').textContent = report.title;
  byId('verdict').className = report.kind;
  const option = (select, value, label) => add(byId(select), 'option', {value}, label);
  for (const select of ['status', 'group']) option(select, '', 'any');
  for (const [status, n] of report.counts) {
    option('status', status, status);
    const chip = add(byId('counts'), 'button', {type: 'button', className: 'tag ' + (KIND[status] || '')}, n + ' ' + status);
    chip.addEventListener('click', () => { location.hash = 'status=' + status; });
  }
  for (const group of report.groups) option('group', group, group);
  for (const [id] of report.matrix) add(byId('ids'), 'option', {value: id});
  for (const fact of report.facts) add(byId('facts'), 'li', {}, fact);
}

fillHead();
readFragment();
show();
addEventListener('hashchange', () => { if (location.hash !== '#failures') { readFragment(); show(); } });
// Who follows a link of the matrix goes on reading at what it leads to.
byId('matrix').addEventListener('click', (event) => { if (event.target.tagName === 'A') byId('failures').focus(); });
for (const field of FIELDS) byId(field).addEventListener('input', () => { writeFragment(); show(); });
byId('filters').addEventListener('submit', (event) => event.preventDefault());
byId('clear').addEventListener('click', () => { location.hash = ''; });
byId('more').addEventListener('click', () => { all = true; show(); });

// Light or dark: as the system has it, as the fragment says, or as the button was pressed.
function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  byId('theme').textContent = dark ? 'light' : 'dark';
}
const wished = new URLSearchParams(location.hash.slice(1)).get('theme');
setTheme(wished ? wished === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches);
byId('theme').addEventListener('click', () => setTheme(document.documentElement.dataset.theme !== 'dark'));

document.documentElement.dataset.ready = String(report.cases.length);
document.documentElement.dataset.elements = String(document.getElementsByTagName('*').length);  // what there is to lay out before it can be read
addEventListener('load', showMatrix);
