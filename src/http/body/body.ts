/**
 * Reads a JSON request body within limits on octets, values, time and the memory of all pending bodies.
 *
 * Called by `app.ts` after access control. Small bodies are parsed and validated at once, large ones in a thread (`large-bodies.ts`).
 * Standards: RFC 9110 §8.4 (content codings; gzip is accepted, limited by its decompressed size), §10.1.1 (100-continue is sent only
 * once the body is wanted), §15.5.16 (415).
 * Fails: AppError validation_error with path `body`, unsupported_media_type, request_timeout, unavailable.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip, type Gunzip } from 'node:zlib'
import { AppError } from '../../core/errors.js'
import type { Holder } from '../../core/holder.js'
import { formatSize } from '../../core/units.js'
import type { Clock, Timer } from '../../world/time/clock.js'
import { timeForOctets } from '../../world/net/transfer-time.js'
import { bodyDigest } from './body-digest.js'
import type { MemoryBudget, MemoryHold } from '../memory-budget.js'
import { parseJson } from './json.js'
import type { BodyRule, LargeBodies, ReadBody } from './large-bodies.js'

/** Octets; larger bodies are parsed in a thread. */
export const INLINE_BODY = 256 * 1_024
/** JSON values of a body, or of one entry of a list of entries. */
export const USUAL_VALUES = 32_768

export interface BodyParts {
  readonly clock: Clock
  readonly large: LargeBodies
  readonly memory: MemoryBudget
}

/**
 * Reads and validates.
 *
 * @param holder whose share of memory it uses; released when the response closes
 * @throws AppError validation_error, unsupported_media_type, request_timeout, unavailable
 */
export async function readJsonBody(
  request: IncomingMessage,
  response: ServerResponse,
  rule: BodyRule,
  holder: Holder,
  wantsDigest: boolean,
  parts: BodyParts,
): Promise<ReadBody> {
  const { bounds } = rule
  refuseCharset(request.headers['content-type'])
  const isCoded = readCoding(request.headers['content-encoding']) === 'gzip'
  const announced = Number(request.headers['content-length'] ?? NaN)
  if (announced > bounds.octets) throw tooLarge(bounds.octets)
  // Memory is counted as octets arrive: announcing a long body costs the client nothing.
  const hold = parts.memory.hold(holder)
  response.once('close', () => hold.release())
  if (/^100-continue$/i.test(request.headers.expect ?? '')) response.writeContinue()
  const reading = new BodyReading(
    request,
    isCoded ? createGunzip() : undefined,
    bounds.octets,
    hold,
    parts.clock,
  )
  let body: Buffer
  try {
    body = await reading.read()
  } finally {
    reading.stop()
  }
  if (body.length > INLINE_BODY) return parts.large.read(body, rule, holder, wantsDigest)
  const value = rule.validate(parseJson(body, bounds))
  return { value, digest: wantsDigest ? bodyDigest(value) : undefined }
}

class BodyReading {
  private readonly request: IncomingMessage
  private readonly gunzip: Gunzip | undefined
  private readonly source: Readable
  private readonly maxOctets: number
  private readonly hold: MemoryHold
  private readonly clock: Clock
  private readonly startedAt: number
  private timer: Timer | undefined
  /** Octets received, and after decompression. */
  private arrived = 0
  private octets = 0
  private chunks: Buffer[] = []
  private resolve: (body: Buffer) => void = () => {}
  private reject: (error: unknown) => void = () => {}

  constructor(
    request: IncomingMessage,
    gunzip: Gunzip | undefined,
    maxOctets: number,
    hold: MemoryHold,
    clock: Clock,
  ) {
    this.request = request
    this.gunzip = gunzip
    this.source = gunzip ?? request
    this.maxOctets = maxOctets
    this.hold = hold
    this.clock = clock
    this.startedAt = clock.monotonic()
  }

  read(): Promise<Buffer> {
    const { request, gunzip, source } = this
    return new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
      // Most bodies arrive together with their header.
      if (!request.complete) this.watchTime()
      source.on('data', this.onData).on('end', this.onEnd)
      request.on('error', this.onCut).on('close', this.onCut)
      if (gunzip) {
        gunzip.on('error', () => reject(invalid('body is not valid gzip, although Content-Encoding is gzip')))
        request.on('data', this.onArrived)
        request.pipe(gunzip)
      }
    })
  }

  /** Detaches from the request, so that others can read the rest. */
  stop(): void {
    const { request, gunzip, source } = this
    this.timer?.cancel()
    this.chunks = []
    source.off('data', this.onData).off('end', this.onEnd)
    request.off('close', this.onCut).off('data', this.onArrived)
    if (!gunzip) return
    request.unpipe(gunzip)
    gunzip.destroy()
  }

  private readonly onArrived = (chunk: Buffer): void => {
    this.arrived += chunk.length
    // Compressed data can be longer than its content, which may even be empty.
    if (this.arrived > this.maxOctets + INLINE_BODY) this.reject(tooLarge(this.maxOctets))
  }

  private readonly onData = (chunk: Buffer): void => {
    this.octets += chunk.length
    this.chunks.push(chunk)
    try {
      if (this.octets > this.maxOctets) throw tooLarge(this.maxOctets)
      this.hold.reach(this.octets)
    } catch (error) {
      this.chunks = []
      this.reject(error)
    }
  }

  private readonly onEnd = (): void => {
    const [first, ...others] = this.chunks
    if (!first) this.reject(invalid('body is required: send a JSON object'))
    else this.resolve(others.length === 0 ? first : Buffer.concat(this.chunks, this.octets))
  }

  private readonly onCut = (): void => {
    if (!this.request.complete) this.reject(invalid('body ended before its announced length'))
  }

  /** The time limit grows with the octets received: slow clients may send large bodies, stalled ones are cut off after a minute. */
  private watchTime(): void {
    const allowedMs = timeForOctets(Math.max(this.octets, this.arrived))
    const leftMs = this.startedAt + allowedMs - this.clock.monotonic()
    if (leftMs > 0) this.timer = this.clock.after(Math.ceil(leftMs), () => this.watchTime())
    else this.reject(new AppError('request_timeout', 'the body did not arrive in time; send it again'))
  }
}

const UTF8 = /^(?:utf-?8|us-ascii|ascii)$/i

/** A missing charset means UTF-8, and any media type is accepted as JSON, because many clients send none or a wrong one. */
function refuseCharset(contentType: string | undefined): void {
  const charset = /;\s*charset\s*=\s*(?:"([^"]*)"|([^\s;]*))/i.exec(contentType ?? '')
  const name = charset?.[1] ?? charset?.[2]
  if (name !== undefined && !UTF8.test(name))
    throw new AppError(
      'unsupported_media_type',
      `charset ${name.slice(0, 40)} is not supported; send UTF-8`,
      {
        path: 'Content-Type',
      },
    )
}

/** @throws AppError unsupported_media_type */
export function readCoding(header = 'identity'): 'identity' | 'gzip' {
  const coding = header.trim().toLowerCase()
  if (coding === 'identity' || coding === '') return 'identity'
  if (coding === 'gzip' || coding === 'x-gzip') return 'gzip'
  throw new AppError('unsupported_media_type', 'Content-Encoding must be gzip or omitted', {
    path: 'Content-Encoding',
  })
}

function tooLarge(octets: number): AppError {
  return invalid(`body is larger than ${formatSize(octets)}, the maximum for this request`)
}

export function invalid(message: string): AppError {
  return new AppError('validation_error', message, { path: 'body' })
}
