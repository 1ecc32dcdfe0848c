/** Text assembled from pre-encoded pieces equals text encoded at once, under random splits; decoded by an independent decoder. */
import { decode } from 'libqp'
import t from 'tap'
import {
  encodePiece,
  MIN_PIECE_LENGTH,
  QuotedPrintableWriter,
  type EncodedPiece,
} from '../../src/mail/compose/encoded-text.js'
import { canonicalBody } from '../support/canonical-body.js'

/** Numbers in [0, below), the same for the same seed (a linear congruential generator). */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** Text that has broken other encoders. */
const BITS = [
  ...[
    'a word',
    ' ',
    '  ',
    '\t',
    ' \t ',
    '\n',
    '\r\n',
    '\r',
    '\n\n',
    '.',
    '\n.\n',
    '=',
    '==',
    '=3D',
    '=\n',
    '€',
  ],
  ...['Grüße', '😀', '\ud83d', '\ude00', 'From ', '-'.repeat(74), '='.repeat(30), 'x'.repeat(150), '\u00a0'],
  ...['<a href="https://x.example/?a=1&amp;b=2">', '\0', '\x7f', 'é'.repeat(40)],
]

function textOf(pick: (below: number) => number, bits: number): string {
  return Array.from({ length: bits }, () => BITS[pick(BITS.length)] ?? '').join('')
}

function encoded(texts: readonly string[], ahead: ReadonlyMap<string, EncodedPiece>) {
  const encoder = new QuotedPrintableWriter(ahead)
  for (const text of texts) encoder.put(text)
  return encoder.end()
}

t.test('pre-encoded pieces and the text between them decode to the original', t => {
  let [ahead, apart] = [0, 0]
  for (let seed = 1; seed <= 3_000; seed += 1) {
    const pick = numbers(seed)
    const texts = Array.from({ length: pick(9) }, () => textOf(pick, pick(2) === 0 ? pick(3) : 4 + pick(30)))
    const pieces = new Map<string, EncodedPiece>()
    for (const text of texts.filter(one => one.length >= MIN_PIECE_LENGTH)) {
      const piece = encodePiece(text)
      if (piece) pieces.set(text, piece)
    }
    const { encoded: lines, canonical = lines } = encoded(texts, pieces)
    const meant = Buffer.from(texts.join('').replace(/\r\n?|\n/g, '\r\n'))
    const faults = [
      decode(lines).equals(meant) ? '' : 'reads as something else',
      lines.split('\r\n').every(line => line.length <= 76) ? '' : 'a line is longer than 76',
      /^[\t\r\n\x20-\x7e]*$/.test(lines) ? '' : 'not printable ASCII',
      /[ \t](\r\n|$)/.test(lines) ? 'white space at the end of a line' : '',
      // A delimiter follows, so that trailing empty lines are not at the end of the body.
      canonicalBody(Buffer.from(`${lines}\r\n-`)).equals(Buffer.from(`${canonical}\r\n-\r\n`))
        ? ''
        : 'DKIM signs something else',
    ].filter(fault => fault !== '')
    if (faults.length > 0) t.fail(faults.join(', '), { seed, texts, lines })
    ahead += pieces.size
    apart += texts.length - pieces.size
  }
  t.ok(ahead > 3_000 && apart > 3_000, `${ahead} pieces encoded ahead, ${apart} texts that were not`)
  t.end()
})

t.test('a text whose edges may combine with adjacent text is not pre-encoded', t => {
  const long = 'x'.repeat(MIN_PIECE_LENGTH)
  for (const text of [`\n${long}`, `${long}\r`, `\ude00${long}`, `${long}\ud83d`])
    t.equal(encodePiece(text), undefined, JSON.stringify(text.replace(long, '…')))
  t.type(encodePiece(`\r\n${long}\n`), 'object')
  t.end()
})
