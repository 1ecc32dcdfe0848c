/**
 * Reads a submitted form: `application/x-www-form-urlencoded`, or a JSON object of fields.
 *
 * Called by `public-app.ts` for POST. Other media types are refused or, if the route allows it, read and treated as an empty form.
 * Standards: URL Standard §5 (urlencoded parsing), RFC 9110 §10.1.1 (100-continue), §15.5.16 (415).
 * Fails: AppError validation_error, unsupported_media_type, request_timeout.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '../../core/errors.js'
import { formatSize } from '../../core/units.js'
import { timeForOctets } from '../../world/net/transfer-time.js'
import type { Clock } from '../../world/time/clock.js'
import { USUAL_VALUES } from '../body/body.js'
import { parseJson } from '../body/json.js'

/** Maximum octets of a form; enough for twenty long fields. */
export const MAX_FORM_OCTETS = 32 * 1_024
const MAX_FIELDS = 500

/** Submitted values by name. A name can occur several times, as with check boxes. */
export class FormFields {
  private readonly values: ReadonlyMap<string, readonly string[]>

  constructor(values: ReadonlyMap<string, readonly string[]>) {
    this.values = values
  }

  /** The first value of this name. */
  get(name: string): string | undefined {
    return this.values.get(name)?.[0]
  }

  all(name: string): readonly string[] {
    return this.values.get(name) ?? []
  }
}

const NO_FIELDS = new FormFields(new Map())

const JSON_TYPE = /^application\/([\w.-]+\+)?json$/

/** @param mediaType without parameters */
export function isJson(mediaType: string): boolean {
  return JSON_TYPE.test(mediaType)
}

export function mediaTypeOf({ headers }: IncomingMessage): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

/** @throws AppError validation_error, unsupported_media_type, request_timeout */
export async function readForm(
  request: IncomingMessage,
  response: ServerResponse,
  clock: Clock,
  isAnyTaken = false,
): Promise<FormFields> {
  const type = mediaTypeOf(request)
  const isForm = type === 'application/x-www-form-urlencoded' || type === ''
  if (!isForm && !isAnyTaken && !isJson(type))
    throw new AppError(
      'unsupported_media_type',
      'send application/x-www-form-urlencoded or application/json',
      { path: 'Content-Type' },
    )
  const octets = await readOctets(request, response, clock)
  if (isForm) return readUrlencoded(octets)
  return isAnyTaken ? NO_FIELDS : readJson(octets)
}

async function readOctets(request: IncomingMessage, response: ServerResponse, clock: Clock): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_FORM_OCTETS) throw tooLarge()
  if (request.headers['content-encoding'] !== undefined)
    throw new AppError(
      'unsupported_media_type',
      'Content-Encoding is not supported for forms; send it uncompressed',
      {
        path: 'Content-Encoding',
      },
    )
  if (/^100-continue$/i.test(request.headers.expect ?? '')) response.writeContinue()
  const chunks: Buffer[] = []
  let octets = 0
  return new Promise((resolve, reject) => {
    const timer = clock.after(timeForOctets(MAX_FORM_OCTETS), () =>
      finish(() => reject(new AppError('request_timeout', 'the form did not arrive in time; send it again'))),
    )
    const onData = (chunk: Buffer): void => {
      octets += chunk.length
      chunks.push(chunk)
      if (octets > MAX_FORM_OCTETS) finish(() => reject(tooLarge()))
    }
    const onEnd = (): void => finish(() => resolve(Buffer.concat(chunks)))
    const onCut = (): void => {
      if (!request.complete) finish(() => reject(invalid('the form ended before its announced length')))
    }
    const finish = (settle: () => void): void => {
      timer.cancel()
      request.off('data', onData).off('end', onEnd).off('close', onCut).off('error', onCut)
      settle()
    }
    request.on('data', onData).on('end', onEnd).on('close', onCut).on('error', onCut)
  })
}

function readUrlencoded(octets: Buffer): FormFields {
  const values = new Map<string, string[]>()
  let count = 0
  for (const [name, value] of new URLSearchParams(octets.toString('utf8'))) {
    if (++count > MAX_FIELDS) throw invalid(`a form may have at most ${MAX_FIELDS} fields`)
    values.set(name, [...(values.get(name) ?? []), value])
  }
  return new FormFields(values)
}

/** Converts numbers and booleans to the text a form would send. */
function readJson(octets: Buffer): FormFields {
  const body = octets.length === 0 ? {} : parseJson(octets, { values: USUAL_VALUES })
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw invalid('send a JSON object of fields')
  const values = new Map<string, readonly string[]>()
  for (const [name, value] of Object.entries(body)) {
    const list: unknown[] = Array.isArray(value) ? value : [value]
    values.set(
      name,
      list.filter(one => one !== null && one !== undefined).map(one => asText(name, one)),
    )
  }
  return new FormFields(values)
}

function asText(name: string, value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw new AppError('validation_error', 'fields must be strings, numbers or booleans', { path: name })
}

function tooLarge(): AppError {
  return invalid(`the form is larger than ${formatSize(MAX_FORM_OCTETS)}, the maximum`)
}

function invalid(message: string): AppError {
  return new AppError('validation_error', message, { path: 'body' })
}
