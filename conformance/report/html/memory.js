// How much device memory a rank holds, as areas one on another. Numbers and names as in drawing.js.

const MEMORY = {width: 960, left: 92, right: 14, top: 42, height: 170};

function bytesText(bytes) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit + 1 < units.length) bytes /= 1024, ++unit;
  return (unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)) + ' ' + units[unit];
}

function memoryInWords(memory) {
  const list = (amounts) => memory.purposes.map(([name], at) => [name, amounts[at]])
      .filter(([, bytes]) => bytes > 0).map(([name, bytes]) => name + ' ' + bytesText(bytes)).join(', ') || 'nothing';
  const [peak, bytes] = memory.peak;
  const here = memory.at_finding.length ? ` After event ${memory.finding}, where it shows: ${list(memory.at_finding)}.` : '';
  return `Device memory of rank ${memory.rank}, all engines together; a block counts until it is given back. ` +
      `At most ${bytesText(bytes)}, after event ${peak} (${list(memory.at_peak)}).` + here;
}

// Areas, the first of the legend lowest, each with its number; the finding and the peak as lines.
function drawMemory(memory) {
  const frame = document.createElement('div');
  frame.className = 'picture';
  const m = MEMORY, columns = memory.purposes[0][1].length, most = memory.peak[1] || 1;
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
  const under = new Array(columns).fill(0), numbers = [];
  memory.purposes.forEach(([name, bytes], at) => {
    let over = '', back = '', thick = 0, label = null;
    for (let column = 0; column < columns; ++column) {
      const low = y(under[column]), high = y(under[column] += bytes[column]);
      if (low - high > thick) thick = low - high, label = [(edge(column) + edge(column + 1)) / 2, (low + high) / 2 + 4];
      over += `${column ? 'L' : 'M'}${edge(column)} ${high} L${edge(column + 1)} ${high} `;
      back = `L${edge(column + 1)} ${low} L${edge(column)} ${low} ` + back;
    }
    const area = svg(root, 'path', {class: 'held m' + at % 8, d: over + back + 'Z'});
    svg(area, 'title', {}, name);
    if (thick > 13) numbers.push([label, at + 1]);
    const left = m.left + (at % 5) * 172, down = m.top + m.height + 38 + 20 * Math.floor(at / 5);
    svg(root, 'rect', {class: 'held m' + at % 8, x: left, y: down - 10, width: 11, height: 11});
    svg(root, 'text', {x: left + 16, y: down}, `${at + 1} ${name}`);
  });
  for (const [[left, down], number] of numbers)
    svg(root, 'text', {class: 'number', x: left, y: down, 'text-anchor': 'middle'}, number);
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
  if (memory.at_finding.length) mark(memory.finding, 'here', 'event ' + memory.finding, 18);
  svg(root, 'text', {class: 'soft', x: m.left, y: m.top + m.height + 16}, `events of rank ${memory.rank}, in the order of issue: 0 to ${memory.events - 1}; areas from the bottom up as in the legend`);
  return frame;
}
