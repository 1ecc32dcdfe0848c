/**
 * Every fault of a configuration in one error, one per line, with line numbers.
 *
 * Thrown by the loader; the command line prints it and exits. Faults never contain secrets or lines of the file.
 */

export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  /** E.g. `mta.retry.frist: unknown key, did you mean mta.retry.first?` */
  readonly faults: readonly string[]

  /** @param file source of the configuration @param text its contents, to find line numbers */
  constructor(file: string, faults: readonly string[], text?: string) {
    const lines = text === undefined ? faults : faults.map(fault => withLine(text, fault))
    super(`${file}: ${faults.length === 1 ? '1 fault' : `${faults.length} faults`}\n  ${lines.join('\n  ')}`)
    this.faults = faults
  }
}

/** Faults of environment variables name the variable and have no line. */
function withLine(text: string, fault: string): string {
  const key = /^([\w.-]+): /.exec(fault)?.[1]
  const line = key === undefined ? undefined : lineOfKey(text, key)
  return line === undefined ? fault : `line ${line}: ${fault}`
}

/** Characters of a wrong value that are quoted. */
const MAX_QUOTE = 60

/** Quotes a wrong value for a fault: truncated, with control characters escaped. */
export function quote(value: unknown): string {
  const json = JSON.stringify(value) as string | undefined
  const shown = json ?? String(value)
  return shown.length > MAX_QUOTE ? `${shown.slice(0, MAX_QUOTE)}...` : shown
}

/**
 * Finds the line of a key, else of its section. Reads only as much TOML as that needs: headers, keys and multi-line strings.
 *
 * @param path dotted, with indexes into lists of tables: `mta.routes.1.host`
 * @returns 1-based line
 */
export function lineOfKey(text: string, path: string): number | undefined {
  const lines = linesByKey(text)
  for (let names = path.split('.'); names.length > 0; names = names.slice(0, -1)) {
    const line = lines.get(names.join('.'))
    if (line !== undefined) return line
  }
  return undefined
}

const HEADER = /^\s*\[(\[)?([\w.\-"'\s]+)\]/
const KEY = /^\s*([\w\-"']+(?:\s*\.\s*[\w\-"']+)*)\s*=(.*)$/

function linesByKey(text: string): Map<string, number> {
  const lines = new Map<string, number>()
  const tables = new Map<string, number>()
  let section = ''
  /** Closing quotes of the multi-line string being skipped. */
  let open: string | undefined
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (open !== undefined) {
      if (line.includes(open)) open = undefined
      continue
    }
    const [, isList, name] = HEADER.exec(line) ?? []
    if (name !== undefined) {
      section = withIndexes(dotted(name), tables)
      if (isList !== undefined) {
        const count = tables.get(section) ?? 0
        tables.set(section, count + 1)
        section = `${section}.${count}`
      }
      keep(lines, section, index + 1)
      continue
    }
    const [, key, value = ''] = KEY.exec(line) ?? []
    if (key === undefined) continue
    keep(lines, section === '' ? dotted(key) : `${section}.${dotted(key)}`, index + 1)
    open = ['"""', "'''"].find(quotes => value.split(quotes).length === 2)
  }
  return lines
}

/** `a.b` in the second table of the list `a` is `a.1.b`. @param tables number of tables so far, by list */
function withIndexes(section: string, tables: ReadonlyMap<string, number>): string {
  const names = section.split('.')
  return names.slice(1).reduce((path, name) => {
    const count = tables.get(path)
    return `${count === undefined ? path : `${path}.${count - 1}`}.${name}`
  }, names[0] ?? '')
}

/** The first occurrence wins; a duplicate key is a separate error. */
function keep(lines: Map<string, number>, key: string, line: number): void {
  if (!lines.has(key)) lines.set(key, line)
}

function dotted(name: string): string {
  return name
    .split('.')
    .map(part => part.trim().replace(/^["']|["']$/g, ''))
    .join('.')
}
