/**
 * Parses JSON by a stranger, once it is known to hold no more than can be kept: a few KB packed can be millions of empty
 * values, each of which is an object of memory before anybody has looked at it.
 *
 * Called by the reader of TLS reports. Pure. Standard: RFC 8259. Fails: throws a plain Error that says what is wrong.
 */

/** Of a whole report: one of a large sender, with thousands of failures, has some ten thousand. */
const MOST_VALUES = 200_000
/** A report nests 6 deep. */
const MOST_DEPTH = 20

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** @throws Error */
export function parseJson(text: string): unknown {
  checkBounds(text)
  try {
    return JSON.parse(text.replace(/^\ufeff/, ''))
  } catch (error) {
    throw new Error('its JSON is damaged', { cause: error })
  }
}

/** One pass; whether it is JSON at all is not asked here. Values are counted by what stands between and around them. */
function checkBounds(text: string): void {
  let values = 0
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at)
        break
      case 0x5b: // [
      case 0x7b: // {
        depth += 1
        values += 1
        if (depth > MOST_DEPTH) throw new Error('its JSON is nested too deep')
        break
      case 0x5d: // ]
      case 0x7d: // }
        depth -= 1
        break
      case 0x2c: // ,
        values += 1
        break
    }
    if (values > MOST_VALUES) throw new Error('its JSON has too many values')
  }
}

/** Of the closing quote; the end of the text where there is none. */
function endOfString(text: string, quote: number): number {
  for (let at = text.indexOf('"', quote + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1
    if (backslashes % 2 === 0) return at
  }
  return text.length
}
