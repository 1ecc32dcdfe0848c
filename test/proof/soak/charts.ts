/** Curves of a soak as one SVG of small charts, without scripts or fonts of its own. */

export interface Curve {
  readonly title: string
  /** Of the last value, e.g. `MB`. */
  readonly unit: string
  /** One for each sample; NaN where there is none. */
  readonly values: readonly number[]
}

const [WIDTH, HEIGHT, GAP, TOP, COLUMNS] = [380, 120, 24, 28, 2]
/** More points than pixels are not seen. */
const MOST_POINTS = WIDTH

/** @param seconds between the first and the last sample @param marks seconds at which something began */
export function chartsSvg(
  title: string,
  curves: readonly Curve[],
  seconds: number,
  marks: readonly { readonly at: number; readonly what: string }[] = [],
): string {
  const rows = Math.ceil(curves.length / COLUMNS)
  const width = COLUMNS * (WIDTH + GAP) + GAP
  const height = rows * (HEIGHT + TOP + GAP) + GAP + TOP
  const charts = curves.map((curve, at) => {
    const left = GAP + (at % COLUMNS) * (WIDTH + GAP)
    const top = GAP + TOP + Math.floor(at / COLUMNS) * (HEIGHT + TOP + GAP)
    return `<g transform="translate(${left} ${top})">${chart(curve, seconds, marks)}</g>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">
<rect width="${width}" height="${height}" fill="#fff"/>
<text x="${GAP}" y="${GAP}" font-size="14">${escaped(title)}</text>
${charts.join('\n')}
</svg>
`
}

function chart(
  { title, unit, values }: Curve,
  seconds: number,
  marks: readonly { readonly at: number; readonly what: string }[],
): string {
  const known = values.filter(value => !Number.isNaN(value))
  const most = niceAbove(Math.max(...known, 0))
  const every = Math.max(1, Math.ceil(values.length / MOST_POINTS))
  const points: string[] = []
  for (let at = 0; at < values.length; at += every) {
    const piece = values.slice(at, at + every).filter(value => !Number.isNaN(value))
    if (piece.length === 0) continue
    const x = (at / Math.max(1, values.length - 1)) * WIDTH
    points.push(`${x.toFixed(1)},${(HEIGHT - (Math.max(...piece) / most) * HEIGHT).toFixed(1)}`)
  }
  const lines = marks.map(({ at, what }) => {
    const x = ((at / seconds) * WIDTH).toFixed(1)
    return `<line x1="${x}" y1="0" x2="${x}" y2="${HEIGHT}" stroke="#bbb" stroke-dasharray="3 3"/><title>${escaped(what)}</title>`
  })
  const last = known.at(-1) ?? 0
  return `<text y="-8">${escaped(title)}: ${shown(last)} ${escaped(unit)} at the end</text>
<rect width="${WIDTH}" height="${HEIGHT}" fill="none" stroke="#ddd"/>
${lines.join('')}
<polyline fill="none" stroke="#146c43" stroke-width="1.2" points="${points.join(' ')}"/>
<text x="${WIDTH - 2}" y="11" text-anchor="end" fill="#777">${shown(most)}</text>
<text x="${WIDTH - 2}" y="${HEIGHT + 13}" text-anchor="end" fill="#777">${shown(seconds / 60)} min</text>`
}

function niceAbove(value: number): number {
  if (value <= 0) return 1
  const scale = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 5, 10].map(step => step * scale).find(step => step >= value) ?? value
}

function shown(value: number): string {
  return value >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString()
}

function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;')
}
