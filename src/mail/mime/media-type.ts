/**
 * Content-Type and Content-Disposition: a value and its parameters.
 *
 * Called by the reader of MIME structure, the reader of relayed headers and the 7-bit conversion. Parameters keep the form and
 * the order they have; `parameter` puts the pieces of RFC 2231 together. Pure.
 * Standards: RFC 2045 §5.1 (grammar), RFC 2231 §3, §4 (long and non-ASCII parameters), RFC 2183 (Content-Disposition).
 * Fails: never throws; what cannot be read is left out. Linear.
 */

export interface MediaType {
  /** `text/plain`, or `attachment` for a disposition: lower case; empty where there is none. */
  readonly value: string
  /** In order, names in lower case as written (`filename*0*`), values without their quotes. */
  readonly parameters: readonly (readonly [name: string, value: string])[]
}

const NAME = /\s*([^\s=;"(]+)\s*=\s*/y
const TOKEN = /[^\s;"(]*/y
const QUOTED = /"([^"\\]*(?:\\.[^"\\]*)*)(?:"|\\?$)/sy
/** Semicolons of one field that are looked behind; nobody has use for more parameters. */
const MAX_PARAMETERS = 100

/** @param text unfolded value of the field */
export function readMediaType(text: string): MediaType {
  const semicolon = text.indexOf(';')
  const value = (semicolon < 0 ? text : text.slice(0, semicolon)).replace(/\(.*/s, '').trim().toLowerCase()
  const parameters: [string, string][] = []
  let at = semicolon
  for (let looks = 0; at >= 0 && looks < MAX_PARAMETERS; looks++) {
    NAME.lastIndex = at + 1
    const name = NAME.exec(text)?.[1]
    if (name !== undefined) {
      const pattern = text[NAME.lastIndex] === '"' ? QUOTED : TOKEN
      pattern.lastIndex = NAME.lastIndex
      const match = pattern.exec(text)
      const found = pattern === QUOTED ? (match?.[1] ?? '').replace(/\\(.)/gs, '$1') : (match?.[0] ?? '')
      parameters.push([name.toLowerCase(), found])
      at = pattern.lastIndex - 1
    }
    at = text.indexOf(';', at + 1)
  }
  return { value, parameters }
}

/** @returns value of a parameter, the pieces of RFC 2231 §3 joined; extended ones (`*=`) still percent-encoded */
export function parameter({ parameters }: MediaType, name: string): string | undefined {
  const whole = parameters.find(([each]) => each === name || each === `${name}*`)
  if (whole) return whole[1]
  const pieces: string[] = []
  for (;;) {
    const stem = `${name}*${pieces.length}`
    const piece = parameters.find(([each]) => each === stem || each === `${stem}*`)
    if (!piece) return pieces.length > 0 ? pieces.join('') : undefined
    pieces.push(piece[1])
  }
}
