'use strict';
// How a finding is drawn: lanes, operations, arrows. Everything from a report goes through
// textContent and setAttribute, so it cannot become markup.

const SVG = 'http://www.w3.org/2000/svg';
const ROLE = ['', 'finding', 'partner', 'waits'];
const LINK = ['event', 'meets', 'unordered', 'circle'];
const SAYS = [
  'a wait, after what it waits for', 'parts of one collective', 'nothing orders these two', 'waits for'
];
const SMALL = new Set(['record', 'wait', 'event_sync', 'alloc', 'free', 'release', 'stream_create']);

function svg(parent, name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

const cut = (text, n) => text.length > n ? text.slice(0, n - 1) + '…' : text;

// Two short lines: what it is, of what.
function labelOf(kind, text) {
  if (kind === 'record') return ['rec', (text.match(/event (\d+)/) || [])[1] || ''];
  if (kind === 'wait' || kind === 'event_sync') return ['wait', (text.match(/event (\d+)/) || [])[1] || ''];
  if (SMALL.has(kind)) return [kind, (text.match(/block (\d+)/) || [])[1] || ''];
  const plain = text.replace(/ \((stream|host)[^)]*\).*$/, '').replace(/^compute /, '');
  const collective = kind === 'collective' && plain.match(/^(\S+)(?: of (.*))? on (\S+)$/);
  if (collective) return [collective[1], collective[3] + (collective[2] ? ', ' + collective[2] : '')];
  const at = plain.search(/ (of|on|under|FWD|BWD|DGRAD|WGRAD)\b|, /);
  if (at < 0) return [plain, ''];
  return [plain.slice(0, at), plain.slice(at).replace(/^ (of|on|under) |^, |^ /, '')];
}

function layOut(drawing) {
  const widths = [];
  for (const [, , column, , kind] of drawing.nodes)
    widths[column] = Math.max(widths[column] || 0, SMALL.has(kind) ? 46 : 148);
  const x = [];
  let at = 14;
  for (let column = 0; column < widths.length; ++column) {
    x[column] = at;
    at += (widths[column] || 0) + 16;
  }
  const y = [];
  let down = 12, rank = -1;
  drawing.lanes.forEach(([of], lane) => {
    if (of !== rank) down += rank < 0 ? 0 : 14;
    rank = of;
    y[lane] = down;
    down += 62;
  });
  return {x, y, widths, width: at + 10, height: down + 8};
}

const sized = (width, height, rest) => ({
  width, height: height + 22, viewBox: `0 -22 ${width} ${height + 22}`, ...rest
});

// Beside the drawing, so that they stay when it is scrolled.
function drawLaneNames(frame, drawing, area) {
  const names = svg(frame, 'svg', sized(136, area.height, {class: 'names', 'aria-hidden': 'true'}));
  let rank = -1;
  drawing.lanes.forEach(([of, name], lane) => {
    const middle = area.y[lane] + 20;
    if (of !== rank) svg(names, 'text', {class: 'rank', x: 12, y: area.y[lane] + 4}, 'rank ' + of);
    rank = of;
    svg(names, 'text', {class: 'soft', x: 12, y: middle + 4}, cut(name, 17));
  });
}

function drawLanes(root, drawing, area) {
  let rank = -1;
  drawing.lanes.forEach(([of], lane) => {
    const middle = area.y[lane] + 20, border = area.y[lane] - 18;
    if (of !== rank && lane > 0)
      svg(root, 'line', {class: 'lane border', x1: 0, x2: area.width, y1: border, y2: border});
    svg(root, 'line', {class: 'lane', x1: 0, x2: area.width, y1: middle, y2: middle});
    rank = of;
  });
}

function drawNodes(root, drawing, area, text) {
  return drawing.nodes.map(([lane, event, column, role, kind, name]) => {
    const width = SMALL.has(kind) ? 46 : 148;
    const x = area.x[column] + (area.widths[column] - width) / 2, y = area.y[lane];
    const group = svg(root, 'g', {});
    svg(group, 'title', {}, 'event ' + event + ': ' + text(name));
    const sync = SMALL.has(kind) || kind.endsWith('sync') || kind === 'call_begin' ? ' sync' : '';
    svg(group, 'rect', {class: 'box' + sync + ' ' + ROLE[role], x, y, width, height: 40, rx: 6});
    const [first, second] = labelOf(kind, text(name));
    const room = SMALL.has(kind) ? 6 : 19;
    svg(group, 'text', {x: x + 6, y: y + 17}, cut(first, room));
    svg(group, 'text', {class: 'soft', x: x + 6, y: y + 32}, cut(second, room));
    return {x, y, width, middle: x + width / 2};
  });
}

function drawLinks(root, drawing, boxes) {
  for (const [from, to, kind] of drawing.links) {
    const a = boxes[from], b = boxes[to];
    const down = b.y > a.y, flat = b.y === a.y;
    let path;
    if (flat) {
      const over = Math.min(a.y, b.y) - 1;
      path = `M${a.middle} ${over} C${a.middle} ${over - 22} ${b.middle} ${over - 22} ${b.middle} ${over}`;
    } else {
      const ya = down ? a.y + 40 : a.y, yb = down ? b.y : b.y + 40, half = (ya + yb) / 2;
      path = `M${a.middle} ${ya} C${a.middle} ${half} ${b.middle} ${half} ${b.middle} ${yb}`;
    }
    const arrow = kind === 0 ? 'url(#head)' : kind === 3 ? 'url(#red)' : 'none';
    const line = svg(root, 'path', {class: LINK[kind], d: path, 'marker-end': arrow});
    svg(line, 'title', {}, SAYS[kind]);
    if (kind !== 2) continue;
    const y = flat ? a.y - 21 : down ? b.y - 7 : b.y + 53;
    svg(root, 'text', {class: 'red', x: flat ? (a.middle + b.middle) / 2 + 8 : b.x + 4, y}, 'no order');
  }
}

// What a screen reader says of it: the operations that are marked.
function describe(drawing, text) {
  const says = ['', 'shows at', 'with', 'in the circle'];
  return drawing.nodes.filter((node) => node[3] > 0)
      .map(([lane, event, , role, , name]) => `${says[role]} rank ${drawing.lanes[lane][0]}, event ${event}: ${text(name)}`)
      .join('; ');
}

// The drawing as lines of text: every operation, rank by rank, with what it is linked to.
function inWords(drawing, text) {
  const says = ['', ', where it shows', ', which has part in it', ', in the circle'];
  const called = (at) => 'event ' + drawing.nodes[at][1] + ' of rank ' + drawing.lanes[drawing.nodes[at][0]][0];
  const linked = drawing.nodes.map(() => []);
  for (const [from, to, kind] of drawing.links) {
    linked[from].push(['before ', 'with ', 'not ordered with ', 'waits for '][kind] + called(to));
    if (kind === 2) linked[to].push('not ordered with ' + called(from));
  }
  return drawing.nodes.map(([lane, event, , role, , name], at) => {
    const [rank, stream] = drawing.lanes[lane];
    return `rank ${rank}, ${stream}, event ${event}: ${text(name)}${says[role]}` + linked[at].map((link) => '; ' + link).join('');
  });
}

// text: reads a name of the drawing. Answers a region that scrolls to the finding.
function drawFinding(drawing, text, caption) {
  const frame = document.createElement('div');
  frame.className = 'picture';
  const area = layOut(drawing);
  drawLaneNames(frame, drawing, area);
  const scrolled = document.createElement('div');
  scrolled.tabIndex = 0;
  scrolled.setAttribute('role', 'region');
  scrolled.setAttribute('aria-label', 'Drawing of ' + caption);
  frame.append(scrolled);
  const root = svg(scrolled, 'svg', sized(area.width, area.height, {role: 'img', 'aria-label': describe(drawing, text)}));
  const defs = svg(root, 'defs', {});
  for (const [id, kind] of [['head', 'head'], ['red', 'head red']]) {
    const marker = svg(defs, 'marker', {id, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7,
                                        markerHeight: 7, orient: 'auto'});
    svg(marker, 'path', {class: kind, d: 'M0 0 L8 4 L0 8 z'});
  }
  drawLanes(root, drawing, area);
  const boxes = drawNodes(root, drawing, area, text);
  drawLinks(root, drawing, boxes);
  const marked = boxes.filter((_, at) => drawing.nodes[at][3] > 0);
  if (marked.length) requestAnimationFrame(() => {
    const left = Math.min(...marked.map((box) => box.x)), right = Math.max(...marked.map((box) => box.x + box.width));
    scrolled.scrollLeft = Math.max(0, Math.max((left + right - scrolled.clientWidth) / 2, right - scrolled.clientWidth + 20));
  });
  return frame;
}
