// How much device memory a rank holds, as areas one on another. Numbers and names as in drawing.js.

const MEMORY = {width: 960, left: 92, right: 14, top: 42, height: 170};

function bytesText(bytes) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit + 1 < units.length) bytes /= 1024, ++unit;
  return (unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)) + ' ' + units[unit];
}

// What is held in one column: [name, bytes], the most first.
const heldIn = (memory, column) => memory.purposes.map(([name, bytes]) => [name, bytes[column]])
    .filter(([, bytes]) => bytes > 0).sort((a, b) => b[1] - a[1]);

function memoryInWords(memory) {
  const columns = memory.purposes[0][1].length;
  const list = (at) => {
    const column = Math.min(columns - 1, Math.floor(at * columns / memory.events));
    return heldIn(memory, column).map(([name, bytes]) => name + ' ' + bytesText(bytes)).join(', ') || 'nothing';
  };
  const [peak, bytes] = memory.peak;
  return `Device memory of rank ${memory.rank}: at most ${bytesText(bytes)}, at event ${peak} of ${memory.events} (${list(peak)}). ` +
      `Around event ${memory.finding}, where it shows: ${list(memory.finding)}.`;
}

// Areas, the largest purpose lowest; the finding and the peak as lines.
function drawMemory(memory) {
  const frame = document.createElement('div');
  frame.className = 'picture';
  const m = MEMORY, columns = memory.purposes[0][1].length, most = memory.peak[1];
  const x = (event) => m.left + (m.width - m.left - m.right) * event / memory.events;
  const y = (bytes) => m.top + m.height * (1 - bytes / most);
  const edge = (column) => x(column * memory.events / columns);
  const scrolled = document.createElement('div');
  scrolled.tabIndex = 0;
  scrolled.setAttribute('role', 'region');
  scrolled.setAttribute('aria-label', 'Device memory of rank ' + memory.rank);
  frame.append(scrolled);
  const rows = Math.ceil(memory.purposes.length / 5), height = m.top + m.height + 34 + 20 * rows;
  const root = svg(scrolled, 'svg', {class: 'memory', width: m.width, height, viewBox: `0 0 ${m.width} ${height}`,
                                     role: 'img', 'aria-label': memoryInWords(memory)});
  const under = new Array(columns).fill(0);
  memory.purposes.forEach(([name, bytes], at) => {
    let over = '', back = '';
    for (let column = 0; column < columns; ++column) {
      const low = y(under[column]), high = y(under[column] += bytes[column]);
      over += `${column ? 'L' : 'M'}${edge(column)} ${high} L${edge(column + 1)} ${high} `;
      back = `L${edge(column + 1)} ${low} L${edge(column)} ${low} ` + back;
    }
    const area = svg(root, 'path', {class: 'held m' + at % 8, d: over + back + 'Z'});
    svg(area, 'title', {}, name);
    const left = m.left + (at % 5) * 172, down = m.top + m.height + 38 + 20 * Math.floor(at / 5);
    svg(root, 'rect', {class: 'held m' + at % 8, x: left, y: down - 10, width: 11, height: 11});
    svg(root, 'text', {x: left + 16, y: down}, name);
  });
  for (const part of [0, 0.5, 1]) {
    svg(root, 'line', {class: 'lane', x1: m.left, x2: m.width - m.right, y1: y(most * part), y2: y(most * part)});
    svg(root, 'text', {class: 'soft', x: m.left - 8, y: y(most * part) + 4, 'text-anchor': 'end'}, bytesText(most * part));
  }
  const mark = (event, kind, text, row) => {
    const at = x(event), late = at > m.width / 2;
    svg(root, 'line', {class: kind, x1: at, x2: at, y1: m.top - 22 + row, y2: m.top + m.height});
    svg(root, 'text', {class: kind, x: at + (late ? -5 : 5), y: m.top - 24 + row, 'text-anchor': late ? 'end' : 'start'}, text);
  };
  mark(memory.peak[0], 'peak', 'most, event ' + memory.peak[0], 0);
  if (memory.finding >= 0) mark(memory.finding, 'here', 'event ' + memory.finding, 18);
  svg(root, 'text', {class: 'soft', x: m.left, y: m.top + m.height + 16}, `events of rank ${memory.rank}, in the order of issue: 0 to ${memory.events}`);
  return frame;
}
