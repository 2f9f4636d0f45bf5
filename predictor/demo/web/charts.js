// Charts on a canvas: a time axis, a value axis, and layers of lines, areas and bands.

const HOUR = 3600;
const PAD = { left: 44, right: 12, top: 10, bottom: 20 };

/** "14:05" for seconds from midnight. */
export function clock(seconds) {
  const minutes = Math.floor(seconds / 60);
  return `${String(Math.floor(minutes / 60) % 24).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
}

/** A colour of the page's own palette, so that charts follow the light or dark scheme. */
function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The round number at or above `value` whose fifth is round as well. */
function roundUp(value) {
  if (value <= 5) return 5;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((n) => n * unit).find((n) => n >= value);
}

export class Chart {
  /** `range` is {from, to, top}: seconds from midnight, and the largest value. */
  constructor(canvas, range) {
    this.canvas = canvas;
    this.range = { ...range, top: range.fixed ?? roundUp(range.top) };
    const ratio = window.devicePixelRatio || 1;
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(this.height * ratio);
    this.pen = canvas.getContext("2d");
    this.pen.scale(ratio, ratio);
    this.pen.lineJoin = "round";
    this.frame();
  }

  x(t) {
    const { from, to } = this.range;
    return PAD.left + ((t - from) / (to - from)) * (this.width - PAD.left - PAD.right);
  }

  y(value) {
    const room = this.height - PAD.top - PAD.bottom;
    return PAD.top + room * (1 - Math.min(value / this.range.top, 1.02));
  }

  /** Grid, labels, and from here on nothing outside the plot. */
  frame() {
    const { pen, range } = this;
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = ink("soft");
    pen.strokeStyle = ink("grid");
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const rows = range.top % 5 === 0 ? 5 : 4; // round numbers beside the grid
    for (let i = 0; i <= rows; i += 1) {
      const value = (range.top / rows) * i;
      const y = Math.round(this.y(value)) + 0.5;
      this.segment(PAD.left, y, this.width - PAD.right, y);
      pen.fillText(value.toLocaleString("en", { maximumFractionDigits: 1 }), PAD.left - 7, y);
    }
    pen.textBaseline = "top";
    const span = range.to - range.from;
    const step = [0.25, 0.5, 1, 2, 3, 4].map((h) => h * HOUR).find((s) => span / s <= (this.width > 700 ? 13 : 7));
    for (let t = Math.ceil(range.from / step) * step; t <= range.to; t += step) {
      if (t < 0) continue;
      const x = Math.round(this.x(t)) + 0.5;
      this.segment(x, PAD.top, x, this.height - PAD.bottom);
      const edge = x > this.width - 26 ? "right" : "center";
      pen.textAlign = edge;
      pen.fillText(t === 24 * HOUR ? "24:00" : clock(t), edge === "right" ? this.width : x, this.height - PAD.bottom + 6);
    }
    pen.beginPath();
    pen.rect(PAD.left, PAD.top - 4, this.width - PAD.left - PAD.right, this.height - PAD.top - PAD.bottom + 5);
    pen.clip();
  }

  segment(x1, y1, x2, y2) {
    this.pen.beginPath();
    this.pen.moveTo(x1, y1);
    this.pen.lineTo(x2, y2);
    this.pen.stroke();
  }

  /** The corners of a line through points [t, value]; `steps` holds each value until the next. */
  corners(points, steps) {
    const corners = [];
    points.forEach(([t, value], i) => {
      if (steps && i > 0) corners.push([this.x(t), this.y(points[i - 1][1])]);
      corners.push([this.x(t), this.y(value)]);
    });
    return corners;
  }

  line(points, { color, width = 1.8, dashed = false, steps = false }) {
    if (points.length < 2) return;
    const { pen } = this;
    pen.strokeStyle = ink(color);
    pen.lineWidth = width;
    pen.setLineDash(dashed ? [5, 4] : []);
    pen.beginPath();
    this.corners(points, steps).forEach(([x, y]) => pen.lineTo(x, y));
    pen.stroke();
    pen.setLineDash([]);
  }

  /** Between two lines of points; `hatched` draws strokes instead of a fill. */
  between(lower, upper, { color, opacity = 0.3, hatched = false, steps = false }) {
    if (upper.length < 2) return;
    const { pen } = this;
    pen.save();
    pen.beginPath();
    this.corners(upper, steps).forEach(([x, y]) => pen.lineTo(x, y));
    this.corners(lower, steps).reverse().forEach(([x, y]) => pen.lineTo(x, y));
    pen.closePath();
    pen.globalAlpha = opacity;
    if (hatched) {
      pen.clip();
      pen.strokeStyle = ink(color);
      pen.lineWidth = 1.4;
      for (let x = -this.height; x < this.width; x += 5) this.segment(x, this.height, x + this.height, 0);
    } else {
      pen.fillStyle = ink(color);
      pen.fill();
    }
    pen.restore();
  }

  /** A vertical line with a word beside it. */
  mark(t, word) {
    const { pen } = this;
    const x = Math.round(this.x(t)) + 0.5;
    pen.strokeStyle = ink("soft");
    pen.lineWidth = 1;
    pen.setLineDash([2, 3]);
    this.segment(x, PAD.top, x, this.height - PAD.bottom);
    pen.setLineDash([]);
    pen.fillStyle = ink("soft");
    pen.textBaseline = "top";
    pen.textAlign = x > this.width / 2 ? "right" : "left";
    pen.fillText(word, x + (x > this.width / 2 ? -5 : 5), PAD.top - 2);
  }
}
