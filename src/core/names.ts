/**
 * Names that people give to things: one reader for all ways in, and one way to show text that may have passed none.
 *
 * Names stand in tables, logs and prompts of terminals, which obey control characters: a name could hide itself, or write what the program
 * did not say. Pure. Standards: ECMA-48 (control functions), UAX #9 §2 (bidirectional formatting).
 */
import { AppError } from './errors.js'

/** C0, DEL, C1, line and paragraph separators, and what reorders the text around it. Direction marks are left: right-to-left names need them. */
const CONTROLS = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u
const EACH_CONTROL = new RegExp(CONTROLS.source, 'gu')

export function hasControls(text: string): boolean {
  return CONTROLS.test(text)
}

/**
 * @param path the field, for the error
 * @returns trimmed and not empty
 * @throws AppError validation_error
 */
export function readName(text: string, path = 'name'): string {
  const name = readOptionalName(text, path)
  if (name === '') throw new AppError('validation_error', `${path} must not be empty`, { path })
  return name
}

/** A name that may be missing. @throws AppError validation_error @returns trimmed */
export function readOptionalName(text: string, path = 'name'): string {
  if (hasControls(text))
    throw new AppError('validation_error', `${path} must not contain control characters`, { path })
  return text.trim()
}

/** For a terminal: control characters as escapes that are valid in JSON too. Line ends and tabs are kept. */
export function visibleText(text: string): string {
  if (!hasControls(text)) return text
  const isKept = (one: string, at: number) =>
    one === '\n' || one === '\t' || (one === '\r' && text[at + 1] === '\n')
  return text.replace(EACH_CONTROL, (one, at: number) => (isKept(one, at) ? one : escapeOf(one)))
}

/** The same for text within a line. */
export function visibleLine(text: string): string {
  return hasControls(text) ? text.replace(EACH_CONTROL, one => ESCAPES[one] ?? escapeOf(one)) : text
}

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r' }

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
