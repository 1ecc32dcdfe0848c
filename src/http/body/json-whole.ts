/**
 * Reads a small JSON body in one go: the same value and the same refusals as `json-reader.ts`, which pays only where a body is
 * large.
 *
 * Called by `body.ts`. Fails: AppError validation_error, path `body`.
 */
import { isUtf8 } from 'node:buffer'
import { JsonReader, refuseUnfit, type JsonBounds } from './json-reader.js'

/** Octets. A value takes two at least (a digit and its comma), so that a small body stays within the bound of any route. */
export const SMALL_BODY = 65_536
export const SMALL_BODY_VALUES = SMALL_BODY / 2

/** @param body at most SMALL_BODY octets @throws AppError validation_error */
export function readWholeJson(body: Buffer, bounds: JsonBounds): unknown {
  const value = parse(body)
  if (value !== undefined) {
    // Valid UTF-8 holds whole characters (RFC 3629 §3): half a pair can only be written as an escape.
    refuseUnfit(value, body.includes('\\u'))
    return value
  }
  // It knows what is wrong, and where.
  const reader = new JsonReader(bounds)
  reader.write(body)
  return reader.end()
}

function parse(body: Buffer): unknown {
  if (!isUtf8(body)) return undefined
  const text = body.toString('utf8')
  try {
    return JSON.parse(text.startsWith('\ufeff') ? text.slice(1) : text) as unknown
  } catch {
    return undefined
  }
}
