/** Plain-text tables: a title, what has to be known to read them, and columns as wide as they need. */

/** @param rows the first is the head; first column to the left, figures to the right */
export function printTable(
  title: string,
  rows: readonly (readonly string[])[],
  notes: readonly string[] = [],
): void {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map(row => row[column]!.length)))
  const lines = rows.map(row =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join('   ')
      .trimEnd(),
  )
  print([title, ...notes.map(note => `  ${note}`), ...lines.map(line => `  ${line}`), ''])
}

/** Names and what they are. */
export function printFacts(title: string, facts: readonly (readonly [string, string])[]): void {
  const width = Math.max(...facts.map(([name]) => name.length))
  print([title, ...facts.map(([name, value]) => `  ${name.padEnd(width)}   ${value}`), ''])
}

/** A sentence where a table would be. */
export function printNotice(sentence: string): void {
  print([sentence, ''])
}

function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`)
}
