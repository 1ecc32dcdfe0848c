/**
 * Streams an uploaded file: the request body itself, or the part `file` of a form.
 *
 * Called by `app.ts` for upload routes, after access control. Memory does not grow with the file, and nothing is read before the
 * handler asks for it. Limits: octets after decompression, and time.
 * Standards: RFC 7578 (multipart/form-data), RFC 9110 §8.4 (gzip), §10.1.1 (100-continue).
 * Fails: reading throws AppError validation_error, unsupported_media_type, request_timeout.
 */
import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { formatSize } from '../../core/units.js'
import { parameter, readMediaType } from '../../mail/mime/media-type.js'
import { timeForOctets } from '../../world/net/transfer-time.js'
import type { Clock } from '../../world/time/clock.js'
import { invalid, readCoding } from './body.js'
import { readForm } from './form.js'

export interface UploadRules {
  /** Maximum octets of the file. */
  readonly octets: number
  /** Accepted media types besides multipart/form-data; the first is the default. */
  readonly mediaTypes: readonly string[]
  /** Descriptions of form fields allowed beside the file, by name. */
  readonly fields: Readonly<Record<string, string>>
  /** For the API description. */
  readonly example: string
}

/** Can be read once. */
export interface Upload {
  readonly pieces: AsyncIterable<Buffer>
  /** Complete once the pieces have been read. */
  readonly fields: ReadonlyMap<string, string>
  readonly file: UploadedFile
}

/** Metadata of the file; for a form, set once its pieces have started. */
export interface UploadedFile {
  name?: string
  charset?: string
}

/** Octets of a form besides the file: fields, part headers. */
const AROUND = 64 * 1_024

export interface DigestedUpload {
  readonly upload: Upload
  readonly digest: () => Promise<string>
  /** Lets the rest of the request be discarded. */
  readonly close: () => void
}

/** @throws AppError unsupported_media_type, validation_error */
export function openUpload(
  request: IncomingMessage,
  response: ServerResponse,
  rules: UploadRules,
  clock: Clock,
): Upload {
  const type = readMediaType(request.headers['content-type'] ?? '')
  const isForm = type.value === 'multipart/form-data'
  if (!isForm && !rules.mediaTypes.includes(type.value))
    throw new AppError(
      'unsupported_media_type',
      `Content-Type may be ${rules.mediaTypes.join(', ')} or multipart/form-data`,
      { path: 'Content-Type' },
    )
  const boundary = isForm ? parameter(type, 'boundary') : undefined
  if (isForm && !boundary) throw invalid('Content-Type multipart/form-data has no boundary')
  const isFolded = readCoding(request.headers['content-encoding']) === 'gzip'
  const most = rules.octets + (isForm ? AROUND : 0)
  if (!isFolded && Number(request.headers['content-length'] ?? 0) > most) throw tooLarge(rules)
  const begin = () => {
    if (/^100-continue$/i.test(request.headers.expect ?? '')) response.writeContinue()
    return octetsOf(request, isFolded, most, rules, clock)
  }
  const fields = new Map<string, string>()
  if (boundary === undefined) {
    const file: UploadedFile = { ...given({ charset: parameter(type, 'charset') }) }
    return { pieces: lazily(begin), fields, file }
  }
  const file: UploadedFile = {}
  return { pieces: lazily(() => fileOf(begin(), boundary, fields, file, rules)), fields, file }
}

/**
 * Digests an upload while it is read.
 *
 * @param query of the request
 * @returns the same upload. `digest` reads the rest of the file first; `close` must be called in the end, since a reader that stops early
 * does not end the upload
 */
export function digested({ pieces, fields, file }: Upload, query: unknown): DigestedUpload {
  const hash = createHash('sha256')
  let isDone = false
  const source = (async function* () {
    for await (const piece of pieces) {
      hash.update(piece)
      yield piece
    }
    isDone = true
  })()
  // A reader that stops early leaves the rest to the digest.
  const shared = { [Symbol.asyncIterator]: () => ({ next: () => source.next() }) }
  let result: Promise<string> | undefined
  const finish = async () => {
    while (!isDone) await source.next()
    const about = [hash.digest('base64url'), [...fields].sort(), file.name ?? null, query]
    return createHash('sha256').update(JSON.stringify(about)).digest('base64url')
  }
  return {
    upload: { pieces: shared, fields, file },
    digest: () => (result ??= finish()),
    close: () => void source.return(),
  }
}

async function* lazily(begin: () => AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield* begin()
}

/** Yields the part `file`; all other parts are fields. */
async function* fileOf(
  octets: AsyncIterable<Buffer>,
  boundary: string,
  fields: Map<string, string>,
  file: UploadedFile,
  rules: UploadRules,
): AsyncGenerator<Buffer> {
  let hasFile = false
  for await (const part of readForm(octets, boundary)) {
    if (part.name !== 'file') {
      if (!Object.hasOwn(rules.fields, part.name))
        throw new AppError('validation_error', `the form has an unknown field`, {
          path: part.name.slice(0, 64) || 'body',
        })
      fields.set(part.name, await textOf(part.pieces))
      continue
    }
    if (hasFile) throw new AppError('validation_error', 'the form has more than one file', { path: 'file' })
    hasFile = true
    Object.assign(file, given({ name: part.fileName, charset: part.charset }))
    yield* part.pieces
  }
  if (!hasFile) throw new AppError('validation_error', 'the form has no part named file', { path: 'file' })
}

async function textOf(pieces: AsyncIterable<Buffer>): Promise<string> {
  const all: Buffer[] = []
  let octets = 0
  for await (const piece of pieces) {
    octets += piece.length
    if (octets > AROUND) throw invalid('a field of the form is too long')
    all.push(piece)
  }
  return Buffer.concat(all).toString('utf8')
}

/** The decompressed body, within limits. Does not destroy the request, which is still to be answered. */
async function* octetsOf(
  request: IncomingMessage,
  isFolded: boolean,
  most: number,
  rules: UploadRules,
  clock: Clock,
): AsyncGenerator<Buffer> {
  const gunzip = isFolded ? createGunzip() : undefined
  const source: Readable = gunzip ? request.pipe(gunzip) : request
  let [arrived, unfolded] = [0, 0]
  const onArrived = (piece: Buffer): void => void (arrived += piece.length)
  const onClosed = (): void => {
    if (!request.complete) gunzip?.destroy()
  }
  if (gunzip) request.on('data', onArrived).once('close', onClosed)
  const watch = new TimeWatch(clock, () => Math.max(arrived, unfolded))
  const pieces = source.iterator({ destroyOnReturn: false })
  let isWaiting = false
  try {
    for (;;) {
      isWaiting = true
      const { value, done } = await watch.within(pieces.next() as Promise<IteratorResult<Buffer, undefined>>)
      isWaiting = false
      if (done) break
      unfolded += value.length
      if (unfolded > most || arrived > most) throw tooLarge(rules)
      yield value
    }
    if (!request.complete) throw cutShort()
  } catch (error) {
    if (error instanceof AppError) throw error
    throw request.complete ? invalid('body is not valid gzip, although Content-Encoding is gzip') : cutShort()
  } finally {
    // An iterator left open keeps the rest of the body from being discarded; one that waits ends with the next octets.
    const ended = pieces.return?.()
    if (!isWaiting) await ended
    request.off('data', onArrived).off('close', onClosed)
    if (gunzip) {
      request.unpipe(gunzip)
      gunzip.destroy()
    }
  }
}

/** The time limit grows with the octets received, as for all bodies. */
class TimeWatch {
  private readonly clock: Clock
  private readonly octets: () => number
  private readonly startedAt: number

  constructor(clock: Clock, octets: () => number) {
    this.clock = clock
    this.octets = octets
    this.startedAt = clock.monotonic()
  }

  /** @throws AppError request_timeout */
  async within<T>(piece: Promise<T>): Promise<T> {
    const limit = this.limit()
    try {
      return await Promise.race([piece, limit.reached])
    } finally {
      limit.cancel()
    }
  }

  private limit() {
    let cancel = (): void => {}
    const reached = new Promise<never>((_, reject) => {
      const watch = (): void => {
        const leftMs = this.startedAt + timeForOctets(this.octets()) - this.clock.monotonic()
        if (leftMs <= 0) {
          reject(new AppError('request_timeout', 'the body did not arrive in time; send it again'))
          return
        }
        const timer = this.clock.after(Math.ceil(leftMs), watch)
        cancel = () => timer.cancel()
      }
      watch()
    })
    return { reached, cancel: () => cancel() }
  }
}

function tooLarge({ octets }: UploadRules): AppError {
  return new AppError(
    'validation_error',
    `the file is larger than ${formatSize(octets)}, the maximum for this request`,
    {
      path: 'file',
    },
  )
}

function cutShort(): AppError {
  return invalid('body ended before its announced length')
}
