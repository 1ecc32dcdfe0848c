/**
 * Parses a small JSON body at once, with the same results and refusals as `json-reader.ts`, which is faster only for large bodies.
 *
 * Called by `body.ts`. Fails: AppError validation_error, path `body`.
 */
import { isUtf8 } from 'node:buffer'
import { JsonReader, refuseUnfit, type JsonBounds } from './json-reader.js'

/** Octets. A value takes at least two (a digit and a comma), so a small body never exceeds the value limit of a route. */
export const SMALL_BODY = 65_536
export const SMALL_BODY_VALUES = SMALL_BODY / 2

/** @param body at most SMALL_BODY octets @throws AppError validation_error */
export function readWholeJson(body: Buffer, bounds: JsonBounds): unknown {
  const value = parse(body)
  if (value !== undefined) {
    // Valid UTF-8 contains no surrogates (RFC 3629 §3), so only escapes can produce one.
    refuseUnfit(value, body.includes('\\u'))
    return value
  }
  // Let the incremental parser find the error and its position.
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
