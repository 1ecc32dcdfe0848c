/**
 * Reads the places of the contract that state a rule: table rows, numbered rules and bullets, each with a name.
 *
 * Called by `contract.test.ts`. A name is the beginning of the heading and of the rule, so that it stays the same when a
 * sentence is appended, and changes for a new rule. Pure.
 */

export interface Place {
  /** The nearest heading above it, cut to its first words. */
  readonly section: string
  /** E.g. `Email > to`, `Authentication > 4`, `Limits > Subject length`. */
  readonly name: string
  readonly text: string
}

interface Line {
  readonly section: string
  readonly kind: 'row' | 'numbered' | 'bullet'
  /** Cells of a row; else the whole text. */
  readonly cells: readonly string[]
}

/** Words that name a bullet or a heading. */
const NAMING_WORDS = 5

/** @param document put before the section where several documents are read, e.g. `decisions: ` */
export function readPlaces(markdown: string, document = ''): Place[] {
  const lines = readLines(markdown)
  return lines.map((line, at) => ({
    section: document + line.section,
    name: `${document}${line.section} > ${nameOf(line, lines, at)}`,
    text: line.cells.join(' | '),
  }))
}

function readLines(markdown: string): Line[] {
  const lines: Line[] = []
  let section = ''
  for (const text of markdown.split('\n')) {
    const heading = /^##+ (.*)$/.exec(text)?.[1]
    const numbered = /^\d+\. (.*)$/.exec(text)?.[1]
    const bullet = /^- (.*)$/.exec(text)?.[1]
    if (heading !== undefined) section = heading.split(' ').slice(0, NAMING_WORDS).join(' ')
    else if (numbered !== undefined) lines.push({ section, kind: 'numbered', cells: [numbered] })
    else if (bullet !== undefined) lines.push({ section, kind: 'bullet', cells: [bullet] })
    else if (/^\|[-|]+\|$/.test(text)) lines.pop()
    else if (text.startsWith('|')) lines.push({ section, kind: 'row', cells: cellsOf(text) })
  }
  return lines
}

function cellsOf(row: string): string[] {
  return row
    .slice(1, row.lastIndexOf('|'))
    .split('|')
    .map(cell => cell.trim())
}

function nameOf(line: Line, lines: readonly Line[], at: number): string {
  const same = lines.filter(other => other.section === line.section && other.kind === line.kind)
  if (line.kind === 'numbered') return String(same.indexOf(lines[at]!) + 1)
  const words = (one: Line) =>
    one.kind === 'row' ? one.cells : (one.cells[0] ?? '').replace(/[`:;,.]|\*\*/g, '').split(' ')
  // Methods without their path name nothing.
  const first = line.kind !== 'row' ? NAMING_WORDS : /^[A-Z]+(, [A-Z]+)*$/.test(line.cells[0] ?? '') ? 2 : 1
  const nameAt = (one: Line, count: number) => words(one).slice(0, count).join(' ')
  let count = first
  while (
    count < words(line).length &&
    same.some(other => other !== line && nameAt(other, count) === nameAt(line, count))
  )
    count += 1
  return nameAt(line, count)
}
