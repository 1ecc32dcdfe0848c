/**
 * The beginning of a CSV file, read in the browser for the preview. The rest of the file is never read here.
 *
 * Delimiter and charset are found as the import finds them, which has the last word. Never throws for a strange file; no columns then.
 */

/** Octets looked at. */
const LOOKED_AT = 256 * 1_024
export const PREVIEW_ROWS = 20
const DELIMITERS = [',', ';', '\t'] as const

export interface CsvPreview {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** False for a file of addresses alone. */
  readonly hasHeading: boolean
}

export async function previewOf(file: File): Promise<CsvPreview> {
  const octets = new Uint8Array(await file.slice(0, LOOKED_AT).arrayBuffer())
  if (isWorkbook(octets)) return { columns: [], rows: [], hasHeading: true }
  const text = decode(octets).replace(/^\uFEFF/, '')
  const rows = rowsOf(text, delimiterOf(text), PREVIEW_ROWS + 1, file.size > LOOKED_AT)
  const [first = [], ...others] = rows
  const isAddress = first.length === 1 && /^[^\s@]+@\S+$/.test(first[0]?.trim() ?? '')
  if (isAddress) return { columns: ['email'], rows: rows.slice(0, PREVIEW_ROWS), hasHeading: false }
  return { columns: first.map(name => name.trim()), rows: others, hasHeading: true }
}

/** Of Excel: a ZIP archive, or a compound file ([MS-CFB] §2.2). */
function isWorkbook([first, second, third, fourth]: Uint8Array): boolean {
  return (
    (first === 0x50 && second === 0x4b && third === 3 && fourth === 4) || (first === 0xd0 && second === 0xcf)
  )
}

function decode(octets: Uint8Array): string {
  const [first, second] = octets
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(octets)
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(octets)
  try {
    // Streaming: the last character may be cut off.
    return new TextDecoder('utf-8', { fatal: true }).decode(octets, { stream: true })
  } catch {
    return new TextDecoder('windows-1252').decode(octets)
  }
}

/** The delimiter that the first line has most of. */
function delimiterOf(text: string): string {
  const line = text.split(/\r?\n/, 1)[0] ?? ''
  const unquoted = line.replace(/"[^"]*"/g, '')
  return DELIMITERS.toSorted((a, b) => unquoted.split(b).length - unquoted.split(a).length)[0] ?? ','
}

/** RFC 4180. @param isCut whether the text ends before the file does: its last row is dropped */
function rowsOf(text: string, delimiter: string, limit: number, isCut: boolean): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let cell = ''
  let isQuoted = false
  const endRow = () => {
    row.push(cell)
    if (row.some(one => one.trim() !== '')) rows.push(row)
    row = []
    cell = ''
  }
  for (let at = 0; at < text.length && rows.length < limit; at++) {
    const letter = text[at] ?? ''
    if (isQuoted) {
      if (letter !== '"') cell += letter
      else if (text[at + 1] === '"') {
        cell += '"'
        at++
      } else isQuoted = false
    } else if (letter === '"' && cell.trim() === '') {
      cell = ''
      isQuoted = true
    } else if (letter === delimiter) {
      row.push(cell)
      cell = ''
    } else if (letter === '\n' || letter === '\r') {
      if (letter === '\r' && text[at + 1] === '\n') at++
      endRow()
    } else cell += letter
  }
  if (rows.length < limit && !isCut) endRow()
  return rows
}

export const FIELDS = [
  'email',
  'first_name',
  'last_name',
  'name',
  'subscribed',
  'status',
  'lists',
  'tags',
  'attributes',
] as const

/** What a column becomes: `auto`, `skip`, `attribute`, or one of `FIELDS`. */
export interface ColumnChoice {
  readonly becomes: string
  /** Name of the attribute, for `attribute`. */
  readonly attribute: string
  /** One of `TYPES`; '' to let the import find it. */
  readonly type: string
}

export const TYPES = ['text', 'number', 'date', 'boolean', 'list'] as const

/** The parameter `types` of the import: the columns whose type was chosen. */
export function typesOf(
  columns: readonly string[],
  choices: readonly ColumnChoice[],
): Record<string, string> {
  return Object.fromEntries(
    columns.flatMap((column, at): [string, string][] => {
      const { becomes = 'auto', type = '' } = choices[at] ?? {}
      return type !== '' && (becomes === 'auto' || becomes === 'attribute') ? [[column, type]] : []
    }),
  )
}

/** The parameter `mapping` of the import: the columns that are not left to it. */
export function mappingOf(
  columns: readonly string[],
  choices: readonly ColumnChoice[],
): Record<string, string | null> {
  return Object.fromEntries(
    columns.flatMap((column, at): [string, string | null][] => {
      const { becomes = 'auto', attribute = '' } = choices[at] ?? {}
      if (becomes === 'auto') return []
      if (becomes === 'skip') return [[column, null]]
      return [[column, becomes === 'attribute' ? `attributes.${attribute.trim() || column}` : becomes]]
    }),
  )
}
