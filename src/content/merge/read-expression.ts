/**
 * Parses the inside of merge tags: names, expressions, values with fallback and format.
 *
 * Called by `parse-template.ts`. Pure. Throws `Fault` without a position, which the caller adds.
 */
import {
  COMPARISONS,
  FORMATS,
  type Expression,
  type Format,
  type Lookup,
  type Operand,
} from './merge-tree.js'

/** A fault inside a tag. */
export class Fault extends Error {}

export interface ReadValue {
  readonly lookup: Lookup
  readonly fallback: string
  readonly format: Format
}

/** Levels of a dotted name. */
const MAX_STEPS = 20
/** Characters of operators, strings and markup, which names must not contain. */
// eslint-disable-next-line no-control-regex -- control characters are what no name holds
const NO_NAME = /[\x00-\x1f\x7f{}<>|"'`()=!&#^*~\\]/

/** `name`, `name|fallback`, `name|fallback|format`. @param isInLoop whether `this` and `@index` are valid */
export function readValue(inner: string, isInLoop: boolean): ReadValue {
  const [name = '', fallback = '', format = '', ...more] = inner.split('|')
  if (more.length > 0) throw new Fault('a tag has at most a name, a fallback and a format')
  const asked = format.trim().toLowerCase()
  const known = asked === '' ? 'text' : FORMATS.find(one => one === asked)
  if (known === undefined)
    throw new Fault(`unknown format ${quoted(asked)}; formats are ${FORMATS.join(', ')}`)
  return { lookup: readLookup(name, isInLoop), fallback: fallback.trim(), format: known }
}

export function readLookup(text: string, isInLoop: boolean): Lookup {
  const name = text.trim()
  if (name === '') throw new Fault('a name is missing')
  if (name.startsWith('@') || name === 'this' || name.startsWith('this.')) return readLoopName(name, isInLoop)
  if (NO_NAME.test(name)) throw new Fault(`${quoted(name)} is not a valid name`)
  const path = readPath(name)
  return { of: 'root', name, path }
}

function readLoopName(name: string, isInLoop: boolean): Lookup {
  if (!isInLoop) throw new Fault(`${quoted(name)} is only valid inside #each`)
  if (name === '@index' || name === '@first' || name === '@last')
    return { of: 'loop', variable: name === '@index' ? 'index' : name === '@first' ? 'first' : 'last' }
  if (name.startsWith('@'))
    throw new Fault(`unknown loop variable ${quoted(name)}; loops have @index, @first and @last`)
  if (NO_NAME.test(name)) throw new Fault(`${quoted(name)} is not a valid name`)
  return { of: 'this', path: readPath(name).slice(1) }
}

function readPath(name: string): string[] {
  const path = name.split('.')
  if (path.some(step => step.trim() === ''))
    throw new Fault(`${quoted(name)} is not a valid name: it has an empty part between dots`)
  if (path.length > MAX_STEPS) throw new Fault(`${quoted(name)} has more than ${MAX_STEPS} levels`)
  return path
}

const EXPRESSION = /^((?:"[^"]*"|'[^']*'|[^"'=!<>])*?)\s*(===|!==|==|!=|>=|<=|>|<|=)\s*(.*)$/s

/** One operand, or a comparison of two. */
export function readExpression(text: string, isInLoop: boolean): Expression {
  const match = EXPRESSION.exec(text)
  if (!match) return { left: readOperand(text, isInLoop) }
  const [, left = '', written = '', right = ''] = match
  const comparison = COMPARISONS.find(one => one === written)
  if (comparison === undefined)
    throw new Fault(`unknown comparison ${quoted(written)}; comparisons are ${COMPARISONS.join(' ')}`)
  return {
    left: readOperand(left, isInLoop),
    right: { comparison, operand: readOperand(right, isInLoop) },
  }
}

function readOperand(text: string, isInLoop: boolean): Operand {
  const written = text.trim()
  if (written === '') throw new Fault('a comparison needs a value on both sides')
  const string = /^"([^"]*)"$|^'([^']*)'$/.exec(written)
  if (string) return { literal: string[1] ?? string[2] ?? '' }
  if (/^-?\d+(\.\d+)?$/.test(written)) return { literal: Number(written) }
  if (written === 'true' || written === 'false') return { literal: written === 'true' }
  if (written === 'null') return { literal: null }
  return { lookup: readLookup(written, isInLoop) }
}

/** Quoted for an error message, truncated to 60 characters. */
export function quoted(text: string): string {
  return `"${text.length > 60 ? `${text.slice(0, 60)}…` : text}"`
}
