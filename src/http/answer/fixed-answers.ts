/**
 * Answers that never change, such as the pages of the API reference: serialized once, and compressed once for each requested coding.
 *
 * Used by `app.ts` for routes with `isFixed`, so memory is bounded by their number. They hold nothing secret, so their compressed length
 * tells nothing (BREACH).
 * Standards: RFC 9110 §12.5.3 (Accept-Encoding), §12.5.5 (Vary), RFC 7932 (Brotli).
 */
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Context } from 'koa'

type Coding = 'br' | 'gzip'

/** In the thread pool. Brotli's quality 9 takes 50 ms for 1.4 MB; 11 takes ten times as long to save another 7 %. */
const CODERS: Readonly<Record<Coding, (octets: Buffer) => Promise<Buffer>>> = {
  br: (octets: Buffer) =>
    promisify(brotliCompress)(octets, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: 9,
        [constants.BROTLI_PARAM_SIZE_HINT]: octets.length,
      },
    }),
  gzip: (octets: Buffer) => promisify(gzip)(octets, { level: 9 }),
}

/** Shorter answers fit into one packet anyway. */
const MIN_OCTETS = 1_024

interface FixedAnswer {
  readonly octets: Buffer
  readonly coded: Map<Coding, Promise<Buffer>>
}

export class FixedAnswers {
  private readonly made = new WeakMap<object, FixedAnswer>()

  /**
   * Sets Content-Encoding and Vary.
   *
   * @param route whose answer it is, by identity
   * @param serialize called once per route
   * @returns the body in the best coding that the client accepts
   */
  async encode(ctx: Context, route: object, serialize: () => Buffer): Promise<Buffer> {
    const answer: FixedAnswer = this.made.get(route) ?? { octets: serialize(), coded: new Map() }
    this.made.set(route, answer)
    if (answer.octets.length < MIN_OCTETS) return answer.octets
    ctx.vary('Accept-Encoding')
    const coding = (['br', 'gzip'] as const).find(one => ctx.acceptsEncodings(one) === one)
    if (coding === undefined) return answer.octets
    ctx.set('Content-Encoding', coding)
    const coded = answer.coded.get(coding) ?? CODERS[coding](answer.octets)
    answer.coded.set(coding, coded)
    return coded
  }
}
