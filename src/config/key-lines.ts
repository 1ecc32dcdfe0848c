/**
 * In which line of the file a key stands, so that a fault can name it.
 *
 * Called by the loader once something is wrong. Reads TOML as far as that takes: headers, keys, strings that go over several lines.
 * Pure. Fails: never throws; a key that it does not find is in no line, and what stands above it is named instead.
 */

/** @param path dotted, with numbers for tables of a list: `mta.routes.1.host` @returns 1 for the first line */
export function lineOfKey(text: string, path: string): number | undefined {
  const lines = linesByKey(text)
  for (let names = path.split('.'); names.length > 0; names = names.slice(0, -1)) {
    const line = lines.get(names.join('.'))
    if (line !== undefined) return line
  }
  return undefined
}

const HEADER = /^\s*\[(\[)?\s*([\w.\-"' ]+?)\s*\]/
const KEY = /^\s*([\w\-"']+(?:\s*\.\s*[\w\-"']+)*)\s*=(.*)$/

function linesByKey(text: string): Map<string, number> {
  const lines = new Map<string, number>()
  const tables = new Map<string, number>()
  let section = ''
  /** What ends the string that the line stands in. */
  let open: string | undefined
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (open !== undefined) {
      if (line.includes(open)) open = undefined
      continue
    }
    const [, isList, name] = HEADER.exec(line) ?? []
    if (name !== undefined) {
      section = dotted(name)
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

/** The first counts: a key that is there twice is a fault of its own. */
function keep(lines: Map<string, number>, key: string, line: number): void {
  if (!lines.has(key)) lines.set(key, line)
}

function dotted(name: string): string {
  return name
    .split('.')
    .map(part => part.trim().replace(/^["']|["']$/g, ''))
    .join('.')
}
