/**
 * Reads a JSON request body within limits on octets, values, time and the memory of all pending bodies.
 *
 * Called by `app.ts` after access control. A small body is parsed at once, a large one in pieces as it arrives, yielding to other work
 * on the event loop.
 * Standards: RFC 9110 §8.4 (content codings; gzip is accepted, limited by its decompressed size), §10.1.1 (100-continue is sent only
 * once the body is wanted), §15.5.16 (415).
 * Fails: AppError validation_error with path `body`, unsupported_media_type, request_timeout, unavailable.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip, type Gunzip } from 'node:zlib'
import { AppError } from '../../core/errors.js'
import { formatSize } from '../../core/units.js'
import type { Clock, Timer } from '../../world/time/clock.js'
import type { LoopShare } from '../../world/time/loop-share.js'
import { timeForOctets } from '../../world/net/transfer-time.js'
import type { BodyMemory, BodyHold } from './body-memory.js'
import { JsonReader, type JsonBounds } from './json-reader.js'
import { readWholeJson, SMALL_BODY } from './json-whole.js'

/** Octets of a large body parsed before yielding; they can hold thousands of values. */
const READ_AT_ONCE = 32_768

export interface BodyBounds extends JsonBounds {
  /** After decompression. */
  readonly octets: number
}

export interface BodyParts {
  readonly clock: Clock
  readonly loop: LoopShare
  readonly memory: BodyMemory
}

export interface ReadBody {
  readonly value: unknown
  /** Too long to validate in one go. */
  readonly isLarge: boolean
}

/**
 * @param holder whose share of memory it uses; released when the response closes
 * @throws AppError validation_error, unsupported_media_type, request_timeout, unavailable
 */
export async function readJsonBody(
  request: IncomingMessage,
  response: ServerResponse,
  bounds: BodyBounds,
  holder: string,
  parts: BodyParts,
): Promise<ReadBody> {
  refuseCharset(request.headers['content-type'])
  const isCoded = readCoding(request.headers['content-encoding']) === 'gzip'
  const announced = Number(request.headers['content-length'] ?? NaN)
  if (announced > bounds.octets) throw tooLarge(bounds.octets)
  const hold = parts.memory.hold(holder)
  response.once('close', () => hold.release())
  // Reserve the announced length now, so that a body once started can be completed.
  if (announced > 0 && !isCoded) hold.reach(announced)
  if (/^100-continue$/i.test(request.headers.expect ?? '')) response.writeContinue()
  const gunzip = isCoded ? createGunzip() : undefined
  const reading = new BodyReading(request, gunzip, bounds, hold, parts)
  try {
    return await reading.read()
  } finally {
    reading.stop()
  }
}

class BodyReading {
  private readonly request: IncomingMessage
  private readonly gunzip: Gunzip | undefined
  private readonly source: Readable
  private readonly bounds: BodyBounds
  private readonly hold: BodyHold
  private readonly parts: BodyParts
  private readonly startedAt: number
  private timer: Timer | undefined
  /** Octets received, and after decompression. */
  private arrived = 0
  private octets = 0
  /** Data still to be parsed. */
  private gathered: Buffer[] = []
  private gatheredOctets = 0
  /** Present once the body has proved to be large. */
  private reader: JsonReader | undefined
  private resolve: (read: ReadBody) => void = () => {}
  private reject: (error: unknown) => void = () => {}

  constructor(
    request: IncomingMessage,
    gunzip: Gunzip | undefined,
    bounds: BodyBounds,
    hold: BodyHold,
    parts: BodyParts,
  ) {
    this.request = request
    this.gunzip = gunzip
    this.source = gunzip ?? request
    this.bounds = bounds
    this.hold = hold
    this.parts = parts
    this.startedAt = parts.clock.monotonic()
  }

  read(): Promise<ReadBody> {
    const { request, gunzip, source } = this
    return new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
      // Most bodies arrive together with their header.
      if (!request.complete) this.watchTime()
      source.on('data', this.onData).on('end', this.onEnd)
      request.on('error', this.onCut).on('close', this.onCut)
      if (gunzip) {
        gunzip.on('error', this.onUnfoldable)
        request.on('data', this.onArrived)
        request.pipe(gunzip)
      }
    })
  }

  /** Detaches from the request, so that others can read the rest. */
  stop(): void {
    const { request, gunzip, source } = this
    this.timer?.cancel()
    source.off('data', this.onData).off('end', this.onEnd)
    request.off('close', this.onCut).off('data', this.onArrived)
    if (!gunzip) return
    request.unpipe(gunzip)
    gunzip.destroy()
  }

  private readonly onArrived = (chunk: Buffer): void => {
    this.arrived += chunk.length
    // Compressed data can be longer than its content, which may even be empty.
    if (this.arrived > this.bounds.octets + SMALL_BODY) this.reject(tooLarge(this.bounds.octets))
  }

  private readonly onData = (chunk: Buffer): void => {
    this.octets += chunk.length
    this.gathered.push(chunk)
    this.gatheredOctets += chunk.length
    try {
      if (this.octets > this.bounds.octets) throw tooLarge(this.bounds.octets)
      this.hold.reach(this.octets)
    } catch (error) {
      this.gathered = []
      this.reject(error)
      return
    }
    if (this.gatheredOctets > SMALL_BODY) this.readOn()
  }

  /** Pauses the source while parsing. */
  private readOn(): void {
    this.source.pause()
    this.readGathered().then(
      () => this.source.resume(),
      (error: unknown) => this.reject(error),
    )
  }

  private async readGathered(): Promise<JsonReader> {
    const { loop } = this.parts
    const gathered = this.takeGathered()
    const reader = (this.reader ??= new JsonReader(this.bounds))
    for (let from = 0; from < gathered.length; from += READ_AT_ONCE)
      await loop.run(() => reader.write(gathered.subarray(from, from + READ_AT_ONCE)))
    return reader
  }

  private takeGathered(): Buffer {
    const { gathered } = this
    this.gathered = []
    this.gatheredOctets = 0
    return gathered.length === 1 && gathered[0] ? gathered[0] : Buffer.concat(gathered)
  }

  private readonly onEnd = (): void => {
    if (this.octets === 0) {
      this.reject(invalid('body is required: send a JSON object'))
    } else if (this.reader) {
      this.readGathered()
        .then(reader => this.parts.loop.run(() => reader.end()))
        .then(value => this.resolve({ value, isLarge: true }), this.reject)
    } else {
      try {
        this.resolve({ value: readWholeJson(this.takeGathered(), this.bounds), isLarge: false })
      } catch (error) {
        this.reject(error)
      }
    }
  }

  private readonly onCut = (): void => {
    if (!this.request.complete) this.reject(invalid('body ended before its announced length'))
  }

  private readonly onUnfoldable = (): void => {
    this.reject(invalid('body is not valid gzip, although Content-Encoding is gzip'))
  }

  /** The time limit grows with the octets received: slow clients may send large bodies, stalled ones are cut off after a minute. */
  private watchTime(): void {
    const allowedMs = timeForOctets(Math.max(this.octets, this.arrived))
    const leftMs = this.startedAt + allowedMs - this.parts.clock.monotonic()
    if (leftMs > 0) this.timer = this.parts.clock.after(Math.ceil(leftMs), () => this.watchTime())
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
